#!/usr/bin/env python3
"""repeatability.py: compiles a model several times from nothing: whether the covers and their latencies are the same.

    benchmarks/repeatability.py [--times 5] [--threads 1] [--budget 0] [--toolchains native,dnnl] [--keep DIR] MODEL [MODEL…]

MODEL is a name below $COLLAGE_MODELS as for whole_models.py, or a path that ends in .onnx. Each compilation begins with an empty
tuning database of its own. The executables are then timed interleaved in one process (with one thread pinned to the first
processor), and again in further processes that load them in another order: the median over processes counts, since the placement
of memory varies between them. Equal executables are timed once. Printed for each model:

    a table of the compilations    winner, partitions, sum of estimates, p50 in its own play-off and interleaved, candidates
                                   measured, candidates in all formats, seconds
    a table of pairs               how many of the graph's operators another toolchain has in the other cover, and how
                                   many are in another partition: one of other nodes or another toolchain's
    a row for docs/results.md      most of these over all pairs, spread of p50 (largest by smallest, minus 1): between
                                   covers, each of which counts with the median of its executables, and between all
                                   executables

--keep DIR keeps each report as MODEL.tTHREADS.N.json, with that of a second compilation with the first one's database as
MODEL.tTHREADS.1.again.json, so that `cost_honesty.py --reports DIR` prints its table without compiling again, and each
executable as MODEL.tTHREADS.N.clg, for a closer look.
Nothing else should run meanwhile.
"""

import argparse
import hashlib
import itertools
import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from whole_models import SHAPES, keep_kernels_beside, models_folder, pinned_to_one, run

COMPILATIONS = (
    "| {model}, compilation | winner | partitions | sum | p50 in the play-off | p50 interleaved | measured "
    "| with formats | seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
PAIRS = "| pair | operators | to another toolchain | in another partition |\n| --- | --- | --- | --- |"
HEADER = (
    "| model | threads | compilations | covers | executables | operators | to another toolchain, at most "
    "| in another partition, at most | p50 | spread between covers | between executables | seconds |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Partition:
    toolchain: str
    nodes: frozenset[int]
    operators: int


@dataclass
class Compilation:
    report: dict
    cover: list[Partition]
    executable: Path
    digest: str
    p50: float = 0  # seconds, interleaved with the others

    @property
    def winner(self) -> dict:
        return next(entry for entry in self.report["play_off"] if entry["name"] == self.report["winner"])


def model_file(name: str) -> Path:
    file = Path(name) if name.endswith(".onnx") else models_folder() / f"{name}.onnx"
    if not file.is_file():
        raise RuntimeError(f"there is no '{file}'")
    return file


def shape_arguments(name: str) -> list[str]:
    return [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)]


def report_name(name: str, threads: int, which: int | str) -> str:
    return f"{name.removesuffix('.onnx').strip('/').replace('/', '_')}.t{threads}.{which}"


def read_cover(file: Path) -> list[Partition]:
    """The partitions of a file that `collage compile --write-partitioning` wrote."""
    return [
        Partition(one["toolchain"], frozenset(one["inside"]), one["operators"].count("+") + 1)
        for one in json.loads(file.read_text())["partitions"]
    ]


def common_operators(a: Partition, b: Partition) -> int:
    """How many operators are in both. Exact where one holds the other; else in proportion to the nodes, constants included."""
    common = len(a.nodes & b.nodes)
    if common == 0:
        return 0
    if common == len(a.nodes):
        return a.operators
    if common == len(b.nodes):
        return b.operators
    return round(min(common * a.operators / len(a.nodes), common * b.operators / len(b.nodes)))


def differences(first: list[Partition], second: list[Partition]) -> tuple[int, int]:
    """Returns how many operators of `first` another toolchain has in `second`, and how many are in another partition."""
    kept = {(partition.toolchain, partition.nodes) for partition in second}
    moved = [partition for partition in first if (partition.toolchain, partition.nodes) not in kept]
    handed = 0
    for partition in moved:
        stays = sum(common_operators(partition, other) for other in second if other.toolchain == partition.toolchain)
        handed += max(0, partition.operators - stays)
    return handed, sum(partition.operators for partition in moved)


def compile_once(name: str, number: int, arguments: argparse.Namespace, folder: Path) -> Compilation:
    executable = folder / f"{number}.clg"
    partitioning = folder / f"{number}.json"
    command = [str(Path(arguments.build) / "bin/collage"), "compile", str(model_file(name)), *shape_arguments(name)]
    command += ["--threads", str(arguments.threads), "--budget", arguments.budget, "--quiet", "--json"]
    command += ["--toolchains", arguments.toolchains] if arguments.toolchains else []
    command += ["--database", str(folder / f"{number}.db")]
    keep_kernels_beside(folder / f"{number}.db")
    text = run([*command, "-o", str(executable), "--write-partitioning", str(partitioning)])
    report = json.loads(text)
    if not report.get("play_off"):
        raise RuntimeError("it is a program, not one graph: there is no cover of the whole")
    if arguments.keep:
        kept = Path(arguments.keep) / report_name(name, arguments.threads, number)
        shutil.copy(executable, f"{kept}.clg")
        Path(f"{kept}.json").write_text(text)
        if number == 1:
            Path(f"{kept}.again.json").write_text(run([*command, "-o", str(folder / "again.clg")]))
    return Compilation(report, read_cover(partitioning), executable, hashlib.sha256(executable.read_bytes()).hexdigest())


def time_all(compilations: list[Compilation], arguments: argparse.Namespace) -> None:
    distinct = {one.digest: one.executable for one in compilations}
    pinned = pinned_to_one(arguments)
    command = [*pinned, str(Path(arguments.build) / "bin/collage"), "benchmark", "--json", "--seconds", arguments.seconds]
    p50 = {digest: [] for digest in distinct}
    for process in range(arguments.processes):
        first = process * len(distinct) // arguments.processes
        order = [*distinct][first:] + [*distinct][:first]
        timed = json.loads(run([*command, *(str(distinct[digest]) for digest in order)]))["executables"]
        for digest, entry in zip(order, timed, strict=True):
            p50[digest].append(entry["p50_seconds"])
    for one in compilations:
        one.p50 = statistics.median(p50[one.digest])


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


def print_compilations(name: str, compilations: list[Compilation]) -> None:
    print(COMPILATIONS.format(model=name))
    for number, one in enumerate(compilations, 1):
        winner, search = one.winner, one.report["search"]
        partitions = " · ".join(f"{toolchain} {count}" for toolchain, count in winner["partitions"].items())
        total = milliseconds(winner["estimated_seconds"]) if winner["estimated_seconds"] > 0 else "not known"
        print(
            f"| {number} | {one.report['winner']} | {partitions} | {total} | {milliseconds(winner['p50_seconds'])} "
            f"| {milliseconds(one.p50)} | {search['measured']}{', budget spent' if search['budget_spent'] else ''} "
            f"| {search['variants']} | {one.report['seconds']['total']:.1f} |"
        )


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    compilations = []
    for number in range(1, arguments.times + 1):
        compilations.append(compile_once(name, number, arguments, folder))
        print(f"{name}: compilation {number} of {arguments.times}", file=sys.stderr)
    time_all(compilations, arguments)
    print_compilations(name, compilations)
    operators = sum(partition.operators for partition in compilations[0].cover)
    most_handed = most_moved = 0
    print(f"\n{PAIRS}")
    for (i, first), (j, second) in itertools.combinations(enumerate(compilations, 1), 2):
        handed, moved = differences(first.cover, second.cover)
        most_handed, most_moved = max(most_handed, handed), max(most_moved, moved)
        print(f"| {i} and {j} | {operators} | {handed} | {moved} |")
    by_cover: dict[frozenset[tuple[str, frozenset[int]]], list[float]] = {}
    for one in compilations:
        cover = frozenset((partition.toolchain, partition.nodes) for partition in one.cover)
        by_cover.setdefault(cover, []).append(one.p50)
    medians = [statistics.median(of_cover) for of_cover in by_cover.values()]
    least, most = min(one.p50 for one in compilations), max(one.p50 for one in compilations)
    seconds = [one.report["seconds"]["total"] for one in compilations]
    return (
        f"| {name} | {arguments.threads} | {arguments.times} | {len(by_cover)} | {len({one.digest for one in compilations})} "
        f"| {operators} | {most_handed} | {most_moved} | {least * 1e3:.3f} to {milliseconds(most)} "
        f"| {(max(medians) / min(medians) - 1) * 100:.1f} % | {(most / least - 1) * 100:.1f} % "
        f"| {min(seconds):.0f} to {max(seconds):.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--times", type=int, default=5, help="compilations of each model, at least 2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="0", help="for measuring candidates (default: no limit)")
    parser.add_argument("--toolchains", help="only these, separated by commas")
    parser.add_argument("--seconds", default="15", help="for the interleaved timing in a process, about")
    parser.add_argument("--processes", type=int, default=3, help="that time the executables, one after the other")
    parser.add_argument("--keep", metavar="DIR", help="keep reports and executables there")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    arguments = parser.parse_args()
    if arguments.times < 2 or arguments.processes < 1:
        parser.error("--times must be 2 at least, --processes 1")
    if arguments.keep:
        Path(arguments.keep).mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(row(name, arguments, Path(folder)))
            except (RuntimeError, OSError) as error:
                print(f"repeatability: {name}: {error}", file=sys.stderr)
                continue
            print(f"\n{HEADER}\n{rows[-1]}\n", flush=True)
    if len(rows) > 1:
        print("\n".join([HEADER, *rows]))
    return 0 if len(rows) == len(arguments.models) else 1


if __name__ == "__main__":
    sys.exit(main())
