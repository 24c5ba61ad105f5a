#!/usr/bin/env python3
"""one_toolchain.py: whether Collage with one toolchain is ever worse than that toolchain's own partitioning.

    benchmarks/one_toolchain.py [--toolchains native,dnnl,openvino] [--threads 1] [--budget 60s] [--times 2] [--seconds 2]
                                [--build build/dev] [--database FILE] [--keep DIR] [--out FILE] MODEL [MODEL…]

MODEL is a name below $COLLAGE_MODELS (~/.cache/collage/models), such as small/resnet50, a pattern such as 'small/*', or a folder.
For each of them and each toolchain T:

    collage compile --toolchains T       searches; operators that T cannot take are left to the native toolchain
    collage compile --partition-for T    no search: partition_for_T of RFC 0.81, the largest partitions that T takes
    collage benchmark                    both executables interleaved in one process, repeated

and prints a row of a Markdown table: how many partitions of which toolchain each has, how many of the operators another
toolchain or another partition has in the other cover, medians over the processes of both latencies and of their ratio
(below 1: the search is faster) with its smallest and largest. Covers of the same partitions in the same layouts have the same
kernels, and are not timed. Costs come from the tuning database and go there. T's own partitioning competes in the search's
play-off, so ratios above 1 are noise.

--keep DIR keeps executables and finished rows: started again with the same arguments, the program resumes. It does not notice
changes of Collage or a toolchain: use another folder then. Nothing else should run meanwhile.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

from repeatability import Partition, differences, milliseconds, model_file, read_cover, report_name, shape_arguments
from whole_models import KeptRows, pinned_to_one, print_rows, run

HEADER = (
    "| model | threads | toolchain | winner | by search | partition_for | operators | to another toolchain "
    "| in another partition | searched | partition_for | ratio | smallest, largest |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def compile_cover(name: str, choice: list[str], arguments: argparse.Namespace, stem: Path) -> tuple[Path, dict, list[Partition]]:
    """The executable, the report and the cover. Files that are in the folder already are not made again."""
    executable, partitioning, notes = (Path(f"{stem}{ending}") for ending in (".clg", ".partitioning.json", ".json"))
    if not notes.exists():
        command = [str(Path(arguments.build) / "bin/collage"), "compile", str(model_file(name)), *shape_arguments(name), *choice]
        command += ["--threads", str(arguments.threads), "--quiet", "--json", "--budget", arguments.budget]
        command += ["--database", arguments.database] if arguments.database else []
        # Last, so that what is there is complete.
        notes.write_text(run([*command, "-o", str(executable), "--write-partitioning", str(partitioning)]))
    return executable, json.loads(notes.read_text()), read_cover(partitioning)


def partitions_of(cover: list[Partition]) -> str:
    names = sorted({partition.toolchain for partition in cover})
    return " · ".join(f"{name} {sum(partition.toolchain == name for partition in cover)}" for name in names)


def same_kernels(searched: Path, greedy: Path) -> bool:
    """Whether executables are the same but for what their partitions are said to cost, of which a search knows more or less."""

    def without_costs(executable: Path) -> list[dict]:
        partitions = json.loads(executable.with_suffix(".partitioning.json").read_text())["partitions"]
        return [{key: value for key, value in one.items() if key != "seconds"} for one in partitions]

    return without_costs(searched) == without_costs(greedy)


def time_both(executables: list[Path], arguments: argparse.Namespace) -> list[tuple[float, float]]:
    pinned = pinned_to_one(arguments)
    command = [str(Path(arguments.build) / "bin/collage"), "benchmark", "--json", "--seconds", arguments.seconds]
    pairs = []
    for repetition in range(arguments.times):
        order = executables if repetition % 2 == 0 else executables[::-1]
        timed = json.loads(run([*pinned, *command, *map(str, order)]))["executables"]
        p50 = [entry["p50_seconds"] for entry in timed]
        pairs.append((p50[0], p50[1]) if repetition % 2 == 0 else (p50[1], p50[0]))
    return pairs


def row(name: str, toolchain: str, arguments: argparse.Namespace, folder: Path) -> str:
    rows = KeptRows(arguments, ["threads", "budget", "times", "seconds"], model_file(name))
    stem = report_name(name, arguments.threads, toolchain)
    kept = rows.find(stem)
    if kept is not None:
        return kept
    place = Path(arguments.keep) if arguments.keep else folder
    searched, report, cover = compile_cover(name, ["--toolchains", toolchain], arguments, place / f"{stem}.searched")
    greedy, _, own = compile_cover(name, ["--partition-for", toolchain], arguments, place / f"{stem}.greedy")
    handed, moved = differences(own, cover)
    cells = (
        f"| {name} | {arguments.threads} | {toolchain} | {report['winner']} | {partitions_of(cover)} | {partitions_of(own)} "
        f"| {sum(partition.operators for partition in own)} | {handed} | {moved} |"
    )
    if same_kernels(searched, greedy):
        return rows.keep(stem, f"{cells} | | 1, the same kernels | |")
    pairs = time_both([searched, greedy], arguments)
    ratios = [ours / theirs for ours, theirs in pairs]
    return rows.keep(
        stem,
        f"{cells} {milliseconds(median(ours for ours, _ in pairs))} | {milliseconds(median(theirs for _, theirs in pairs))} "
        f"| {median(ratios):.3f} | {min(ratios):.3f}, {max(ratios):.3f} |",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--toolchains", default="native,dnnl,openvino", help="one after the other")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="60s", help="for measuring candidates, each compilation")
    parser.add_argument("--times", type=int, default=2, help="processes that compare, each with memory of its own")
    parser.add_argument("--seconds", default="2s", help="for each of them, about")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--database", help="tuning database (default: the user's)")
    parser.add_argument("--keep", metavar="DIR", help="keep executables and finished rows there; those there are not made again")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    if arguments.keep:
        Path(arguments.keep).mkdir(parents=True, exist_ok=True)
    return print_rows("one_toolchain", HEADER, row, arguments, arguments.toolchains.split(","))


if __name__ == "__main__":
    sys.exit(main())
