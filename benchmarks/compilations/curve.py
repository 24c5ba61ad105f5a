#!/usr/bin/env python3
"""curve.py: latency of what a compilation has written so far, over the time that it had.

    benchmarks/compilations/curve.py [--threads 1] [--marks 10,30,60,300] [--limit 600] [--interrupts 0]
                                     [--build build/dev] [--keep DIR] [--out FILE] MODEL…

MODEL is as for whole_models.py, and may give the shapes of its inputs: architectures/ghostnet_100.torchscript:x=1x3x224x224. Each
is compiled from nothing, without known costs or compiled kernels, for --limit seconds of measuring at most. What lies in the place
of the executable is kept at each of --marks, seconds since the command began. All of them are timed in turn in one process. A cell
has the latency over that of the last executable; behind it, as the compilation had printed it by then, the share by which another
mix could be faster: the cost of the last mix must not be below that bound. --keep leaves the last executables in DIR, for mixes.py
and explain_claims.py.

--interrupts N also compiles the model N times more, and ends each compilation by SIGINT at another moment, drawn at random: there
must be an executable that runs, the compilation must succeed, and no other file may be left. Nothing else should run meanwhile.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from whole_models import SHAPES, models_folder, pinned_to_one, run

# As in whole_models.py: the first columns of a row are the model and the threads.
FIRST_COLUMNS = ["model", "threads", "seconds of the compilation", "p50"]
GAP = re.compile(r"another mix may be ([0-9.]+) % faster")


@dataclass
class Mark:
    """The executable and the bound at a moment of a compilation."""

    seconds: float
    file: Path | None = None
    gap: float | None = None  # as printed, a share


@dataclass
class Curve:
    marks: list[Mark]
    seconds: float = 0
    report: dict = field(default_factory=dict)


def command_for(name: str, arguments: argparse.Namespace, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The compilation, and its environment, in which nothing is known."""
    collage = Path(arguments.build) / "bin/collage"
    name, *shapes = name.split(":")
    command = [str(collage), "compile", f"{models_folder() / name}.onnx", "-o", str(folder / "model.clg"), "--json"]
    command += [
        "--threads",
        str(arguments.threads),
        "--budget",
        f"{arguments.limit}s",
        "--database",
        str(folder / "tuning.db"),
    ]
    command += [part for shape in shapes or SHAPES.get(name, []) for part in ("--shape", shape)]
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    return command, os.environ | {"COLLAGE_KERNEL_CACHE": str(folder / "kernels"), "TMPDIR": str(temporary)}


def last_gap(log: Path) -> float | None:
    found = GAP.findall(log.read_text())
    return float(found[-1]) / 100 if found else None


def draw(name: str, arguments: argparse.Namespace, folder: Path) -> Curve:
    """Compiles, and keeps what is there at each mark."""
    command, environment = command_for(name, arguments, folder)
    curve = Curve([Mark(seconds) for seconds in arguments.marks])
    log = folder / "log"
    started = time.monotonic()
    with log.open("w") as errors, (folder / "report.json").open("w") as report:
        process = subprocess.Popen(command, env=environment, stdout=report, stderr=errors)
        for mark in curve.marks:
            while process.poll() is None and time.monotonic() < started + mark.seconds:
                time.sleep(0.02)
            mark.gap = last_gap(log)
            if (folder / "model.clg").exists():
                mark.file = folder / f"at{mark.seconds:g}.clg"
                shutil.copy(folder / "model.clg", mark.file)
        process.wait()
    curve.seconds = time.monotonic() - started
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nexit code {process.returncode}\n{log.read_text()}")
    curve.report = json.loads((folder / "report.json").read_text())
    return curve


def time_all(files: list[Path], arguments: argparse.Namespace) -> list[float]:
    """Medians of executables that take turns."""
    collage = str(Path(arguments.build) / "bin/collage")
    printed = run(
        [*pinned_to_one(arguments), collage, "benchmark", *map(str, files), "--json", "--seconds", arguments.seconds]
    )
    return [one["p50_seconds"] for one in json.loads(printed)["executables"]]


def cell(mark: Mark, ratio: float | None) -> str:
    if ratio is None:
        return "nothing yet"
    return f"{ratio:.3f}" + ("" if mark.gap is None else f" ({100 * mark.gap:.0f} %)")


def row_of(name: str, arguments: argparse.Namespace, ratios: dict[float, list[float]]) -> str:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        curve = draw(name, arguments, folder)
        there = [mark for mark in curve.marks if mark.file is not None]
        *times, last = time_all([*[mark.file for mark in there], folder / "model.clg"], arguments)
        of = {mark.seconds: seconds / last for mark, seconds in zip(there, times, strict=True)}
        for seconds, ratio in of.items():
            ratios[seconds].append(ratio)
        cells = [cell(mark, of.get(mark.seconds)) for mark in curve.marks]
        if arguments.keep:
            kept = Path(arguments.keep) / f"{name.split(':')[0]}.clg"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "model.clg", kept)
        for _ in range(arguments.interrupts):
            interrupt(name, arguments, curve.seconds)
        return f"| {name} | {arguments.threads} | {curve.seconds:.0f} | {last * 1e3:.3f} ms | {' | '.join(cells)} |"


def interrupt(name: str, arguments: argparse.Namespace, seconds: float) -> None:
    """Raises unless a compilation that is ended within `seconds` leaves one executable, which runs, and nothing else."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command, environment = command_for(name, arguments, folder)
        after = random.uniform(0.2, seconds)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        _, errors = process.communicate()
        took = time.monotonic() - asked
        left = [str(path) for path in folder.rglob("*") if path.is_file() and not is_kept(path, folder)]
        print(f"{name}: SIGINT after {after:.1f} s, ended {took:.1f} s later", file=sys.stderr)
        if process.returncode != 0 or left:
            raise RuntimeError(
                f"{name}: SIGINT after {after:.1f} s: exit code {process.returncode}, left {left}\n{errors}"
            )
        run([str(Path(arguments.build) / "bin/collage"), "run", str(folder / "model.clg"), "--random"])


def is_kept(path: Path, folder: Path) -> bool:
    """Whether the file is one that a compilation is to leave: its executable, its costs and compiled kernels."""
    inside = path.relative_to(folder)
    return inside.parts[0] in ("model.clg", "kernels") or inside.parts[0].startswith("tuning.db")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--marks", default="10,30,60,300", help="seconds")
    parser.add_argument("--limit", type=int, default=600, help="seconds of measuring")
    parser.add_argument("--seconds", default="6", help="for timing the executables of a model")
    parser.add_argument("--interrupts", type=int, default=0, help="compilations of each model that are ended by SIGINT")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--keep", help="keep the last executables in this folder")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    arguments.marks = [float(mark) for mark in arguments.marks.split(",")]
    columns = [*FIRST_COLUMNS, *[f"after {mark:g} s" for mark in arguments.marks]]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns), flush=True)
    ratios: dict[float, list[float]] = {mark: [] for mark in arguments.marks}
    failed = 0
    for name in arguments.models:
        try:
            row = row_of(name, arguments, ratios)
        except RuntimeError as error:
            print(f"curve: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        print(row, flush=True)
        if arguments.out:
            with open(arguments.out, "a", encoding="utf-8") as out:
                print(row, file=out)
    for mark, all_ratios in ratios.items():
        if all_ratios:
            mean = math.exp(sum(map(math.log, all_ratios)) / len(all_ratios))
            print(f"after {mark:g} s: geometric mean {mean:.3f} over {len(all_ratios)}, at most {max(all_ratios):.3f}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
