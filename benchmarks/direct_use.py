#!/usr/bin/env python3
"""direct_use.py: what it costs to use OpenVINO through Collage instead of directly.

    benchmarks/direct_use.py [--threads 1] [--times 3] [--seconds 5] [--build build/dev] [--out FILE] MODEL [MODEL…]

MODEL is a name below $COLLAGE_MODELS (~/.cache/collage/models), such as full/resnet50; `./setup models` writes them. For each:

    collage compile --partition-for openvino   no search: what OpenVINO takes in pieces as large as possible
    bench_openvino_peer                        that executable and OpenVINO's own API on the ONNX file, interleaved in one
                                               process, same threads and hints; repeated, since where memory lies
                                               differs, every second time with OpenVINO's loaded first

and prints a row of a Markdown table: medians over the processes of both latencies, of their ratio (above 1: slower through
Collage) with its smallest and largest, and of the ratio of minima, and the largest difference of results. Models of which
OpenVINO does not take everything have more than one partition. Nothing else should run meanwhile.
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
    r"collage ([0-9.]+) ms.*OpenVINO ([0-9.]+) ms.*ratio of p50 ([0-9.]+), of minima ([0-9.]+).*difference ([0-9.e+-]+)"
)


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build = Path(arguments.build)
    model = models_folder() / f"{name}.onnx"
    executable = (Path(arguments.keep) if arguments.keep else folder) / f"{name.replace('/', '_')}_{arguments.threads}.clg"
    shapes = [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)]
    notes = executable.with_suffix(".json")
    if not (arguments.keep and notes.exists()):
        command = [str(build / "bin/collage"), "compile", str(model), "-o", str(executable), "--quiet", "--json"]
        notes.write_text(run(command + ["--partition-for", "openvino", "--threads", str(arguments.threads), *shapes]))
    if arguments.compile_only:
        return ""
    report = json.loads(notes.read_text())
    winner = next(entry for entry in report["play_off"] if entry["name"] == report["winner"])
    partitions = " · ".join(f"{toolchain} {count}" for toolchain, count in winner["partitions"].items())
    pinned = ["taskset", "-c", "0"] if arguments.threads == 1 else []
    peer = pinned + [str(build / "bin/bench_openvino_peer"), str(model), str(executable), arguments.seconds]
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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--times", type=int, default=4, help="processes that compare, each with memory of its own")
    parser.add_argument("--seconds", default="5", help="for each of them, about")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--keep", help="folder for the executables: those that are there are not compiled again")
    parser.add_argument("--compile-only", action="store_true", help="with --keep: time nothing")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    return print_rows("direct_use", HEADER, row, arguments)


if __name__ == "__main__":
    sys.exit(main())
