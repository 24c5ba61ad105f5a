#!/usr/bin/env python3
"""direct_use.py: the overhead of OpenVINO or ONNX Runtime used through Collage instead of directly.

    benchmarks/direct_use.py [--toolchain openvino] [--threads 1] [--times 4] [--seconds 5] [--build build/dev]
                             [--database FILE] [--keep DIR [--compile-only]] [--out FILE] MODEL [MODEL…]

MODEL is a name below $COLLAGE_MODELS (~/.cache/collage/models), such as full/resnet50, a pattern such as 'small/*', or a folder;
`./setup models` writes them. For each:

    targets --support                    operators that the toolchain does not take: a model that it cannot take whole is named with
                                         the reason, and skipped
    compile --partition-for TOOLCHAIN    no search: the largest partitions that the toolchain takes
    bench_openvino_peer, bench_onnxruntime_peer
                                         that executable and the vendor's own API on the ONNX file, interleaved in one
                                         process, same threads and options; repeated, since the placement of memory varies,
                                         every second time with the vendor's loaded first

and prints a row of a Markdown table: medians over the processes of both latencies, of their ratio (above 1: slower through
Collage) with its smallest and largest, and of the ratio of minima, and the largest difference of results. If a model that
is taken whole has several partitions, the results of larger ones were refused.

--keep DIR keeps executables and finished rows: started again with the same arguments, the program resumes. It does not notice
changes of Collage or a toolchain: use another folder then. Nothing else should run meanwhile.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median

from repeatability import model_file, report_name, shape_arguments
from whole_models import KeptRows, NotComparable, pinned_to_one, print_rows, run

HEADER = (
    "| model | threads | partitions | through Collage | directly | ratio | smallest, largest | of minima | difference |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
LINE = re.compile(
    r"collage ([0-9.]+) ms [^,]*, [A-Za-z ]+ ([0-9.]+) ms .*ratio of p50 ([0-9.]+), of minima ([0-9.]+).*difference ([0-9.e+-]+)"
)
ROOT = Path(__file__).resolve().parent.parent
# Reasons that are told why a model is not taken whole.
MOST_REASONS = 3


def check_support(name: str, arguments: argparse.Namespace) -> None:
    """Throws NotComparable for a model that the toolchain does not take whole."""
    command = [str(Path(arguments.build) / "bin/collage"), "targets", "--support", str(model_file(name)), "--json"]
    report = json.loads(run([*command, "--toolchains", arguments.toolchain, *shape_arguments(name)]))
    reasons = [
        f"{operator['name']} (not {refused['calls']} of {operator['calls']}: {refused['reason']})"
        for operator in report["toolchains"][0]["operators"]
        for refused in operator["refused"]
    ]
    if report["outside"] > 0:
        reasons.append(f"{report['outside']} calls are in no region of dataflow of static tensors")
    if reasons:
        more = f" and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
        raise NotComparable(f"{arguments.toolchain} does not take it whole: {'; '.join(reasons[:MOST_REASONS])}{more}")


def compile_alone(name: str, executable: Path, arguments: argparse.Namespace) -> str:
    """The report, as JSON."""
    command = [str(Path(arguments.build) / "bin/collage"), "compile", str(model_file(name)), "-o", str(executable)]
    command += ["--quiet", "--json", "--partition-for", arguments.toolchain, "--threads", str(arguments.threads)]
    command += ["--database", arguments.database] if arguments.database else []
    return run(command + shape_arguments(name))


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    build = Path(arguments.build)
    stem = report_name(name, arguments.threads, arguments.toolchain)
    rows = KeptRows(arguments, ["toolchain", "threads", "times", "seconds"], model_file(name))
    kept = rows.find(stem)
    if kept is not None and not arguments.compile_only:
        return kept
    executable = (Path(arguments.keep) if arguments.keep else folder) / f"{stem}.clg"
    notes = executable.with_suffix(".json")
    if not (arguments.keep and notes.exists()):
        check_support(name, arguments)
        notes.write_text(compile_alone(name, executable, arguments))
    if arguments.compile_only:
        return ""
    report = json.loads(notes.read_text())
    winner = next(entry for entry in report["play_off"] if entry["name"] == report["winner"])
    partitions = " · ".join(f"{toolchain} {count}" for toolchain, count in winner["partitions"].items())
    pinned = pinned_to_one(arguments)
    program = build / f"bin/bench_{arguments.toolchain}_peer"
    peer = pinned + [str(program), str(model_file(name)), str(executable), arguments.seconds]
    runs = []
    for repetition in range(arguments.times):
        answer = run(peer + (["peer-first"] if repetition % 2 else []))
        found = LINE.search(answer)
        if found is None:
            raise RuntimeError(f"{' '.join(peer)} answered '{answer}'")
        ours, theirs, ratio, minima, difference = map(float, found.groups())
        runs.append((ratio, ours, theirs, minima, difference))
    ratios, ours, theirs, minima, differences = ([one[i] for one in runs] for i in range(5))
    return rows.keep(
        stem,
        f"| {name} | {arguments.threads} | {partitions} | {median(ours):.3f} ms | {median(theirs):.3f} ms "
        f"| {median(ratios):.3f} | {min(ratios):.3f}, {max(ratios):.3f} | {median(minima):.3f} | {max(differences):.1e} |",
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
    parser.add_argument("--keep", metavar="DIR", help="keep executables and finished rows there; those there are not made again")
    parser.add_argument("--compile-only", action="store_true", help="with --keep: time nothing")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    if arguments.keep:
        Path(arguments.keep).mkdir(parents=True, exist_ok=True)
    return print_rows("direct_use", HEADER, row, arguments)


if __name__ == "__main__":
    sys.exit(main())
