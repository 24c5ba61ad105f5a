"""Gathers what a machine without this project needs: a bundle, programs of tests, packed candidates, models."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from .entries import entries, is_for_gpu
from .weights import take_out

PROGRAMS = "programs.tar.xz"
BUNDLE = "bundle.tar.xz"
PACK = "models.clmp"
TESTS = "tests.json"
MODELS = "models"


def prepare(folder: Path, build: Path, models: list[Path], packed: list[Path], architecture: str) -> None:
    """`models` are timed as wholes, and the candidates of `packed` one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    collage = build / "bin/collage"
    pack_programs(folder, build)
    for model in models:
        (folder / MODELS).mkdir(exist_ok=True)
        take_out(model, folder / MODELS)
    command([collage, "bundle", folder / BUNDLE])
    if packed:
        targets = [
            f"cuda -arch={architecture}",
            f"cuda -compiler=cudnn -arch={architecture}",
            "cuda -compiler=cublas",
            "llvm",
        ]
        named = [word for target in targets for word in ("--target", target)]
        command([collage, "pack", *packed, "-o", folder / PACK, "--threads", "1", "--quiet", *named])


def pack_programs(folder: Path, build: Path) -> None:
    """The tests' executables, without symbols, and how each entry calls them."""
    chosen = [entry for entry in entries(build) if is_for_gpu(entry.name)]
    programs = {entry.program for entry in chosen}
    for entry in chosen:
        entry.program = Path(entry.program).name
    (folder / TESTS).write_text(json.dumps([asdict(entry) for entry in chosen]))
    stripped = folder / "programs"
    stripped.mkdir()
    for program in programs:
        shutil.copy(program, stripped)
        command(["strip", stripped / Path(program).name])
    command(["tar", "-cJf", folder / PROGRAMS, "-C", stripped, "."])
    shutil.rmtree(stripped)


def command(words: list[object]) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"gpu_day: error: {words[0]} failed: {done.stderr}")


def mebibytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
