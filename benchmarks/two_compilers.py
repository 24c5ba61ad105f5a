#!/usr/bin/env python3
"""two_compilers.py: compiles models with two builds of Collage: which executables are faster, which build compiles faster.

    benchmarks/two_compilers.py OLD NEW [--threads 1] [--budget 60s] [--estimator analytic] [--seconds 5]
                                [--toolchains a,b] [--once] MODEL [MODEL…]

OLD and NEW are build folders with bin/collage; MODEL is as for repeatability.py. Each build compiles with an empty database
of its own, and again with that database unless --once is given. Then NEW times both executables, interleaved in one
process. Printed is a row for each model, and at the end the geometric mean:

    p50, least        of the executables, NEW's time by OLD's
    first, again      seconds of the two compilations by OLD, by NEW, and NEW's by OLD's
    search, play-off  the same for these parts of the first compilation; executables that are written early are part of the search
    certificate       NEW's: by how much a cover of the candidates could be faster, and whether the search was exact

Nothing else should run meanwhile.
"""

import argparse
import json
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from repeatability import model_file, shape_arguments
from whole_models import keep_kernels_beside, pinned_to_one, run

HEADER = (
    "| model | winners | p50, new/old | least, new/old | first | again | search | play-off | certificate |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


@dataclass
class Compiled:
    executable: Path
    first: dict  # reports
    again: dict | None


def compile_twice(name: str, build: Path, folder: Path, arguments: argparse.Namespace) -> Compiled:
    folder.mkdir()
    executable, database = folder / "model.clg", folder / "costs.db"
    command = [*pinned_to_one(arguments), str(build / "bin/collage"), "compile", str(model_file(name))]
    command += [*shape_arguments(name), "--threads", str(arguments.threads), "--quiet", "--json"]
    command += ["--budget", arguments.budget] if arguments.budget else []
    command += ["--estimator", arguments.estimator] if arguments.estimator else []
    command += ["--toolchains", arguments.toolchains] if arguments.toolchains else []
    command += ["--database", str(database), "-o"]
    keep_kernels_beside(database)
    first = json.loads(run([*command, str(executable)]))
    if arguments.once:
        return Compiled(executable, first, None)
    return Compiled(executable, first, json.loads(run([*command, str(folder / "again.clg")])))


def ratio_of_seconds(old: float, new: float) -> str:
    return f"{old:.1f} to {new:.1f} s, {new / old:.2f}" if old > 0 else f"{new:.1f} s"


def row(name: str, arguments: argparse.Namespace, folder: Path) -> tuple[str, float]:
    old = compile_twice(name, arguments.old, folder / "old", arguments)
    new = compile_twice(name, arguments.new, folder / "new", arguments)
    command = [*pinned_to_one(arguments), str(arguments.new / "bin/collage"), "benchmark", "--json"]
    command += ["--seconds", arguments.seconds, str(old.executable), str(new.executable)]
    before, after = json.loads(run(command))["executables"]
    p50 = after["p50_seconds"] / before["p50_seconds"]
    parts = [(old.first["seconds"][part], new.first["seconds"][part]) for part in ("search", "play_off")]
    certificate = new.first.get("certificate")
    proven = "none" if certificate is None else f"{certificate['gap']:.1%}{', exact' if certificate['exact'] else ''}"
    cells = [
        name,
        f"{old.first['winner']}, {new.first['winner']}",
        f"{p50:.3f}",
        f"{after['min_seconds'] / before['min_seconds']:.3f}",
        ratio_of_seconds(old.first["seconds"]["total"], new.first["seconds"]["total"]),
        ratio_of_seconds(old.again["seconds"]["total"], new.again["seconds"]["total"])
        if old.again and new.again
        else "",
        *(ratio_of_seconds(*pair) for pair in parts),
        proven,
    ]
    return f"| {' | '.join(cells)} |", p50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget")
    parser.add_argument("--estimator")
    parser.add_argument("--seconds", default="5")
    parser.add_argument("--toolchains", help="of both, where they differ in those that take part by default")
    parser.add_argument("--once", action="store_true", help="compile each model once, with nothing known")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    ratios = []
    for name in arguments.models:
        try:
            with tempfile.TemporaryDirectory() as folder:
                text, ratio = row(name, arguments, Path(folder))
        except (RuntimeError, KeyError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        ratios.append(ratio)
        print(text, flush=True)
    if ratios:
        print(f"\nGeometric mean of p50 over {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")
    return 0 if len(ratios) == len(arguments.models) else 1


if __name__ == "__main__":
    sys.exit(main())
