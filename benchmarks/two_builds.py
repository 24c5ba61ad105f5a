#!/usr/bin/env python3
"""two_builds.py: compares how long two builds take to find candidates and to search.

    benchmarks/two_builds.py OLD NEW [--rounds 5] MODEL.onnx [MODEL.onnx…]

OLD and NEW are build folders with bin/bench_search_scale, which runs in turn, OLD and NEW within each round. Printed is a
table with the least seconds of each build, and the median over rounds of NEW's time by OLD's in the same round, for
times of 50 ms and more. It fails if the
two differ in candidates or in states of the search. Nothing else should run meanwhile.
"""

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

# name, operators, candidates, variants, three times, states
_ROW = re.compile(
    r"^(?P<name>.+?)\s+(?P<counts>\d+\s+\d+\s+\d+)\s+(?P<times>[\d.]+ s\s+[\d.]+ s\s+[\d.]+ s)\s+(?P<states>\d+)\s"
)
PARTS = ("enumerate", "layouts", "search")


def measure(build: Path, model: str) -> dict[str, tuple[tuple[str, ...], list[float]]]:
    """Returns by row, without and with layouts, the counts of one run and its seconds for enumerating, layouts, search."""
    command = [str(build / "bin" / "bench_search_scale"), "--longest", "0", model]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {}
    for row in filter(None, map(_ROW.match, printed.splitlines())):
        if row["name"].startswith(Path(model).name):
            seconds = [float(time) for time in re.findall(r"([\d.]+) s", row["times"])]
            found[row["name"]] = (*row["counts"].split(), row["states"]), seconds
    if not found:
        sys.exit(f"{' '.join(command)}: no row of {model} in:\n{printed}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    arguments = parser.parse_args()
    print("| model | variants | states | " + " | ".join(f"{part}, old | new | new/old" for part in PARTS) + " |")
    print("| --- " * (3 + 3 * len(PARTS)) + "|")
    for model in arguments.models:
        rounds = [(measure(arguments.old, model), measure(arguments.new, model)) for _ in range(arguments.rounds)]
        for name in rounds[0][0]:
            counts = {run[name][0] for pair in rounds for run in pair}
            if len(counts) != 1:
                sys.exit(f"{name}: the builds differ in operators, candidates, variants or states: {counts}")
            _, _, variants, states = counts.pop()
            cells = [name.replace(".onnx", ""), variants, states]
            for part in range(len(PARTS)):
                old, new = ([pair[side][name][1][part] for pair in rounds] for side in (0, 1))
                ratios = [after / before for before, after in zip(old, new, strict=True) if before > 0.05]
                ratio = f"{statistics.median(ratios):.2f}" if ratios else "-"
                cells += [f"{min(old):.2f} s", f"{min(new):.2f} s", ratio]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
