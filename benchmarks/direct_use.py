#!/usr/bin/env python3
"""direct_use.py: what it costs to use OpenVINO or ONNX Runtime through Collage instead of directly.

    benchmarks/direct_use.py [--toolchain openvino] [--threads 1] [--times 4] [--seconds 5] [--build build/dev]
                             [--database FILE] [--keep DIR [--compile-only]] [--out FILE] MODEL [MODEL…]

MODEL is a name below $COLLAGE_MODELS (~/.cache/collage/models), such as full/resnet50; `./setup models` writes them. For each:

    compile --partition-for TOOLCHAIN    no search: what the toolchain takes in pieces as large as possible; by the Python
                                         package for onnxruntime, which is registered there
    bench_openvino_peer, bench_onnxruntime_peer
                                         that executable and the vendor's own API on the ONNX file, interleaved in one
                                         process, same threads and options; repeated, since where memory lies differs,
                                         every second time with the vendor's loaded first

and prints a row of a Markdown table: medians over the processes of both latencies, of their ratio (above 1: slower through
Collage) with its smallest and largest, and of the ratio of minima, and the largest difference of results. Models of which
the toolchain does not take everything have more than one partition. Nothing else should run meanwhile.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median

from whole_models import SHAPES, models_folder, print_rows, run

HEADER = (
    "| model | threads | partitions | through Collage | directly | ratio | smallest, largest | of minima | difference |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
LINE = re.compile(
    r"collage ([0-9.]+) ms [^,]*, [A-Za-z ]+ ([0-9.]+) ms .*ratio of p50 ([0-9.]+), of minima ([0-9.]+).*difference ([0-9.e+-]+)"
)
# Compiles by the Python package: sys.argv[1] holds the arguments of collage.compile as JSON.
IN_PYTHON = "import collage, json, sys; print(json.dumps(collage.compile(**json.loads(sys.argv[1])).report))"
FROM_PYTHON = {"onnxruntime"}
ROOT = Path(__file__).resolve().parent.parent


def compile_alone(name: str, executable: Path, arguments: argparse.Namespace) -> str:
    """The report, as JSON."""
    build = Path(arguments.build)
    model = str(models_folder() / f"{name}.onnx")
    if arguments.toolchain in FROM_PYTHON:
        shapes = [shape.split("=") for shape in SHAPES.get(name, [])]
        options = {
            "model": model,
            "output": str(executable),
            "partition_for": arguments.toolchain,
            "threads": arguments.threads,
            "database": arguments.database,
            "shapes": {tensor: [int(size) for size in sizes.split("x")] for tensor, sizes in shapes},
        }
        python = ROOT / ".venv/bin/python"
        interpreter = str(python) if python.exists() else sys.executable
        return run(["env", f"PYTHONPATH={build / 'python'}", interpreter, "-c", IN_PYTHON, json.dumps(options)])
    command = [str(build / "bin/collage"), "compile", model, "-o", str(executable), "--quiet", "--json"]
    command += ["--partition-for", arguments.toolchain, "--threads", str(arguments.threads)]
    if arguments.database:
        command += ["--database", arguments.database]
    return run(command + [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)])


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build = Path(arguments.build)
    stem = f"{name.replace('/', '_')}_{arguments.toolchain}_{arguments.threads}"
    executable = (Path(arguments.keep) if arguments.keep else folder) / f"{stem}.clg"
    notes = executable.with_suffix(".json")
    if not (arguments.keep and notes.exists()):
        notes.write_text(compile_alone(name, executable, arguments))
    if arguments.compile_only:
        return ""
    report = json.loads(notes.read_text())
    winner = next(entry for entry in report["play_off"] if entry["name"] == report["winner"])
    partitions = " · ".join(f"{toolchain} {count}" for toolchain, count in winner["partitions"].items())
    pinned = ["taskset", "-c", "0"] if arguments.threads == 1 else []
    program = build / f"bin/bench_{arguments.toolchain}_peer"
    peer = pinned + [str(program), str(models_folder() / f"{name}.onnx"), str(executable), arguments.seconds]
    runs = []
    for repetition in range(arguments.times):
        answer = run(peer + (["peer-first"] if repetition % 2 else []))
        found = LINE.search(answer)
        if found is None:
            raise RuntimeError(f"{' '.join(peer)} answered '{answer}'")
        ours, theirs, ratio, minima, difference = map(float, found.groups())
        runs.append((ratio, ours, theirs, minima, difference))
    ratios, ours, theirs, minima, differences = ([one[i] for one in runs] for i in range(5))
    return (
        f"| {name} | {arguments.threads} | {partitions} | {median(ours):.3f} ms | {median(theirs):.3f} ms "
        f"| {median(ratios):.3f} | {min(ratios):.3f}, {max(ratios):.3f} | {median(minima):.3f} | {max(differences):.1e} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--toolchain", choices=["openvino", "onnxruntime"], default="openvino")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--times", type=int, default=4, help="processes that compare, each with memory of its own")
    parser.add_argument("--seconds", default="5", help="for each of them, about")
    parser.add_argument("--build", default=str(ROOT / "build/dev"))
    parser.add_argument("--database", help="tuning database (default: the user's)")
    parser.add_argument("--keep", help="folder for the executables: those that are there are not compiled again")
    parser.add_argument("--compile-only", action="store_true", help="with --keep: time nothing")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    return print_rows("direct_use", HEADER, row, arguments)


if __name__ == "__main__":
    sys.exit(main())
