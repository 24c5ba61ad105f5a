#!/usr/bin/env python3
"""certificates.py: whether mixes that were found later cost no less than the bounds that were printed earlier.

    benchmarks/explanations/certificates.py [--marks 10,60,300] --executables DIR [--build build/dev] MODEL…

DIR has the executables that compilations/curve.py --keep has left, DIR/MODEL.clg, whose explanations hold the steps of the search
with the bounds below which no mix of the candidates costs. Columns:

    ended       seconds of the search
    cost        the last mix's
    after 10 s  the last bound by then, as a share of that cost: it holds if it is at most 100 %
    holds       whether all bounds hold, those of other moments too, within the 0.5 % by which repeated measurements of one kernel
                differ
    exact       whether the search says that no candidate was left out
    gap         the share by which another mix may be faster still
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from whole_models import print_rows, run

# The estimator's own (Noise in src/cost/estimator/measuring_estimator.h).
NOISE = 0.005


def share(seconds: float | None, of: float) -> str:
    return "none" if seconds is None else f"{100 * seconds / of:.1f} %"


def bound_by(steps: list[dict], seconds: float) -> float | None:
    """The last bound of steps until then."""
    known = [step["least_seconds"] for step in steps if step["seconds"] <= seconds and "least_seconds" in step]
    return known[-1] if known else None


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    executable = Path(arguments.executables) / f"{name}.clg"
    explained = json.loads(run([str(Path(arguments.build) / "bin/collage"), "explain", str(executable), "--json"]))
    certificate = explained["report"]["certificate"]
    if certificate is None or len(explained["graphs"]) != 1:
        raise RuntimeError("it was not searched as one graph")
    steps = explained["graphs"][0]["progress"]
    cost = certificate["cover_seconds"]
    bounds = [step["least_seconds"] for step in steps if "least_seconds" in step]
    holds = all(bound <= cost * (1 + NOISE) for bound in bounds)
    cells = [share(bound_by(steps, mark), cost) for mark in arguments.marks]
    ended = steps[-1]["seconds"]
    exact = "yes" if certificate["exact"] else "no"
    return (
        f"| {name} | {ended:.0f} s | {cost * 1e3:.3f} ms | {' | '.join(cells)} | {'yes' if holds else 'no'} | {exact} "
        f"| {100 * certificate['gap']:.2f} % |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--marks", default="10,60,300", help="seconds")
    parser.add_argument("--executables", required=True, metavar="DIR")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    arguments.marks = [float(mark) for mark in arguments.marks.split(",")]
    columns = ["model", "ended", "cost", *[f"after {mark:g} s" for mark in arguments.marks], "holds", "exact", "gap"]
    header = "| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns)
    return print_rows("certificates", header, row, arguments)


if __name__ == "__main__":
    sys.exit(main())
