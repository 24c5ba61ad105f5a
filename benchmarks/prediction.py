#!/usr/bin/env python3
"""prediction.py: how well sums of partitions predict whole models, by how the partitions were timed.

    benchmarks/prediction.py [--threads 1] [--build build/dev] [--databases FOLDER] MODEL [MODEL…]

MODEL as for whole_models.py. Each model is compiled with kernels timed warm and timed as a run of the model leaves the caches
(docs/costs.md), with a database for each way; the rows compare the best cover's sum with its end-to-end time in the play-off,
and its time with that of the best toolchain alone. Nothing else should run meanwhile.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from whole_models import SHAPES, models_folder

WAYS = {"warm": ["--operands", "near"], "as the model leaves it": []}
HEADER = "| model | threads | timed | sum | end to end | error | to best alone |\n| --- | --- | --- | --- | --- | --- | --- |"


def row(name: str, way: str, arguments: argparse.Namespace, folder: Path) -> str:
    model = models_folder() / name
    command = [str(Path(arguments.build) / "bin/collage"), "compile", f"{model}.onnx", "-o", str(folder / "model.clg")]
    command += ["--database", str(folder / f"{way}.db"), "--threads", str(arguments.threads), "--json", "--quiet"]
    command += WAYS[way] + [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    entrants = [entry for entry in json.loads(done.stdout)["play_off"] if not entry["failure"]]
    best = entrants[0]  # the least sum
    alone = min(entry["p50_seconds"] for entry in entrants if entry["single"])
    total, whole = best["estimated_seconds"], best["p50_seconds"]
    return (
        f"| {name} | {arguments.threads} | {way} | {total * 1e3:.3f} ms | {whole * 1e3:.3f} ms "
        f"| {(total / whole - 1) * 100:+.1f} % | {whole / alone:.3f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--databases", help="folder of tuning databases that are kept (default: a temporary one)")
    arguments = parser.parse_args()
    print(HEADER)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.databases or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.models:
            for way in WAYS:
                print(row(name, way, arguments, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
