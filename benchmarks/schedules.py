#!/usr/bin/env python3
"""schedules.py: gain of trying schedules of native kernels, and trials per minute.

    benchmarks/schedules.py [--threads 1] [--budget 60s] [--build build/dev] [--databases FOLDER] MODEL [MODEL…]

MODEL as for whole_models.py. Each model is partitioned for the native toolchain, with one database: first without trials, then with
a tuning budget; both executables are then timed in turns. Nothing else should run meanwhile.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from whole_models import SHAPES, keep_kernels_beside, models_folder

HEADER = (
    "| model | threads | trials | a minute | partitions faster | of their time saved | before | tuned | gain |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def compile_model(name: str, output: Path, arguments: argparse.Namespace, database: Path, more: list[str]) -> Any:
    command = [str(Path(arguments.build) / "bin/collage"), "compile", str(models_folder() / f"{name}.onnx"), "-o", str(output)]
    command += ["--partition-for", "native", "--threads", str(arguments.threads), "--database", str(database), "--json", "--quiet"]
    command += [part for shape in SHAPES.get(name, []) for part in ("--shape", shape)] + more
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def row(name: str, arguments: argparse.Namespace, folder: Path) -> str:
    database = folder / f"{Path(name).name}.db"
    keep_kernels_beside(database)
    before, tuned = folder / "before.clg", folder / "tuned.clg"
    compile_model(name, before, arguments, database, [])
    tuning = compile_model(name, tuned, arguments, database, ["--tuning-budget", arguments.budget])["tuning"]
    command = [str(Path(arguments.build) / "bin/collage"), "benchmark", str(before), str(tuned), "--json"]
    timed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["executables"]
    old, new = (one["p50_seconds"] for one in timed)
    return (
        f"| {name} | {arguments.threads} | {tuning['trials']} | {tuning['trials_per_minute']:.0f} "
        f"| {tuning['faster']} of {tuning['partitions']} | {tuning['gain'] * 100:.1f} % "
        f"| {old * 1e3:.3f} ms | {new * 1e3:.3f} ms | {old / new:.3f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="60s", help="what trials may take for each model")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parent.parent / "build/dev"))
    parser.add_argument("--databases", help="folder of tuning databases that are kept (default: a temporary one)")
    arguments = parser.parse_args()
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.databases or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.models:
            print(row(name, arguments, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
