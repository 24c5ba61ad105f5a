"""The steps, each of which ends by its deadline and returns what it found until then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import assumptions, peers
from .entries import Entry, run
from .prepare import MODELS, PACK
from .report import Findings
from .weights import draw

TOOLCHAINS = ("cuda", "cublas", "cudnn", "cutlass", "tensorrt", "triton")
PRECISIONS = {"float32": "", "TF32": " -inference_precision=tf32", "float16": " -inference_precision=f16"}
LONGEST_TEST = 120.0
SHOWN = 8
"""Failures of a toolchain that are written out."""
SANITIZED = 12
"""Tests that are also run under each tool of NVIDIA's sanitizer."""


@dataclass
class Day:
    """The folder that was prepared, and what was unpacked beside it."""

    folder: Path
    collage: Path
    programs: Path
    entries: dict[str, Entry]
    environment: dict[str, str]
    of_programs: dict[str, str]
    """As `environment`, for tests: they find the bundle's libraries by it."""
    deadline: float = 0
    """When the step that is being done must end, by time.monotonic()."""

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def call(self, *arguments: object, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the command `collage`. A call that is out of time has the exit code 124, as with `timeout`."""
        words = [str(self.collage), *map(str, arguments)]
        limit = max(1.0, min(self.left(), seconds or self.left()))
        try:
            return subprocess.run(
                words, env=os.environ | self.environment, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", f"stopped after {limit:.0f} s")

    def json(self, *arguments: object) -> tuple[dict, str]:
        """The report of a command, or why there is none."""
        done = self.call(*arguments, "--json")
        return (
            (json.loads(done.stdout), "") if done.returncode in (0, 1) and done.stdout else ({}, last_line(done.stderr))
        )


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["nothing was said"])[-1]


def ask(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout.strip()
    except OSError as error:
        return str(error)


def clocks() -> str:
    """Clock, power and temperature of now, and why the clock is lowered, if it is."""
    fields = "clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active"
    return ask("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader")


def machine(day: Day) -> Findings:
    found = Findings("The machine", ["what", "is"])
    fields = "name,driver_version,compute_cap,memory.total,clocks.max.sm,power.limit"
    found.rows.append(["GPU", ask("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader")])
    found.rows.append(["Collage", day.call("--version").stdout])
    listed, why = day.json("targets")
    for toolchain in listed.get("toolchains", []):
        text = toolchain["version"] if toolchain["available"] else "not here: " + toolchain["reason"]
        found.rows.append([toolchain["name"], text])
    found.remark = why
    return found


def tests(day: Day, names: Iterator[str], row: Callable[[str, str, str], list[str]], found: Findings) -> Findings:
    """Runs tests until the deadline. `row` makes one of name, result and last words."""
    results: Counter[str] = Counter()
    for name in names:
        if day.left() < 1:
            result, words = "not run", ""
        elif name not in day.entries:
            result, words = "no such test", ""
        else:
            result, words = run(day.entries[name], day.programs, day.of_programs, min(day.left(), LONGEST_TEST), [])
        results[result] += 1
        found.rows.append(row(name, result, words))
    found.remark = ", ".join(f"{count} {result}" for result, count in results.most_common())
    return found


def confirm(day: Day) -> Findings:
    known = {one.test: one for one in assumptions.read()}
    verdict = {"passed": "confirmed", "failed": "refuted"}
    found = Findings("Assumptions of the stand-ins", ["of", "assumption", "verdict", "words"])
    return tests(
        day,
        iter(known),
        lambda name, result, words: [known[name].of, known[name].text, verdict.get(result, result), words],
        found,
    )


def kernels(day: Day) -> Findings:
    known = {one.test for one in assumptions.read()}
    names = [name for name in day.entries if name not in known and not name.endswith(".full")]
    found = Findings("Tests on the GPU", ["test", "result", "words"])
    return tests(day, iter(names), lambda *cells: list(cells), found)


def conformance(day: Day) -> Findings:
    found = Findings("Operators of each toolchain, on random shapes", ["toolchain", "rows", "rows that agree", "words"])
    for name in TOOLCHAINS:
        report, why = day.json("targets", "--table", "--toolchains", name)
        for toolchain in report.get("toolchains", []):
            rows = toolchain["rows"]
            failures = [f"{one['operator']} {one['dtype']}: {text}" for one in rows for text in one["failures"][:1]]
            agree = len(rows) - len(failures)
            words = "; ".join(failures[:SHOWN]) or toolchain["reason"]
            found.rows.append([name, str(len(rows)), str(agree), words])
        if not report:
            found.rows.append([name, "", "", why])
    return found


def sanitizer(day: Day) -> Findings:
    found = Findings("NVIDIA's sanitizer", ["tool", "test", "result", "words"])
    program = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if program is None:
        found.remark = "compute-sanitizer is not installed."
        return found
    names = [name for name in day.entries if name.startswith("conformance.gpu.") and "Cuda" in name][:SANITIZED]
    for tool in ("memcheck", "racecheck", "synccheck"):
        for name in names:
            if day.left() < 1:
                return found
            wrapper = [program, "--tool", tool, "--error-exitcode", "9", "--target-processes", "all"]
            limit = min(day.left(), LONGEST_TEST)
            result, words = run(day.entries[name], day.programs, day.of_programs, limit, wrapper)
            found.rows.append([tool, name, result, words])
    return found


def measure(day: Day) -> Findings:
    found = Findings("Costs of candidates", ["model", "measured", "known before", "failed", "left", "left out"])
    pack = day.folder / PACK
    if not pack.exists():
        found.remark = "No candidates were packed."
        return found
    before = clocks()
    report, why = day.json(
        "measure", pack, "--quiet", "--name", "gpu-day", "--seconds", f"{max(5, day.left() - 20):.0f}s"
    )
    for model in report.get("models", []):
        found.rows.append(
            [str(model[name]) for name in ("name", "measured", "from_database", "failed", "left", "left_out")]
        )
    found.remark = f"{why} Clock, power, temperature, reasons: before {before}; after {clocks()}.".strip()
    return found


def models(day: Day) -> Findings:
    columns = [
        "model",
        "precision",
        "mix of Collage",
        "partitions",
        "least single toolchain",
        "ratio",
        "others",
        "words",
    ]
    found = Findings("Whole models", columns)
    for file in sorted((day.folder / MODELS).glob("*.onnx")):
        draw(file)
        for precision, option in PRECISIONS.items():
            if day.left() < 1:
                return found
            found.rows.append([file.stem, precision, *compare(day, file, option)])
    return found


def compare(day: Day, model: Path, option: str) -> list[str]:
    """One row of `models`: what the play-off measured of the mix and of each toolchain alone, and others beside it."""
    executable = day.folder / "model.clg"
    listed, _ = day.json("targets")
    named = ["--target", "llvm"]
    available = {one["name"] for one in listed.get("toolchains", []) if one["available"]}
    for name in TOOLCHAINS:
        target = "cuda" if name == "cuda" else f"cuda -compiler={name}"
        if name == "cuda" or name in available:
            named += ["--target", target + (option if takes(listed, target, option) else "")]
    budget = f"{max(10, min(120, day.left() / 4)):.0f}s"
    report, why = day.json(
        "compile", model, "-o", executable, "--threads", 1, "--budget", budget, "--max-error", 0.05, "--quiet", *named
    )
    if not report:
        return ["", "", "", "", "", why]
    singles = {one["name"]: one["p50_seconds"] for one in report["play_off"] if one["single"] and one["p50_seconds"]}
    mix = report["p50_seconds"]
    name = min(singles, key=lambda one: singles[one], default="")
    ratio = f"{mix / singles[name]:.3f}" if name else ""
    least = f"{name} {singles[name] * 1e3:.3f} ms" if name else ""
    others = ", ".join(f"{one} {seconds * 1e3:.3f} ms" for one, seconds in peers.times(model, day.left()).items())
    return [f"{mix * 1e3:.3f} ms", json.dumps(report["play_off"][0]["partitions"]), least, ratio, others, ""]


def takes(listed: dict, target: str, option: str) -> bool:
    """Whether the toolchain of a target has that value of the option."""
    name = target.rpartition("=")[2]
    value = option.rpartition("=")[2]
    return any(
        one["name"] == "inference_precision" and value in one["meaning"].replace(",", " ").replace(":", " ").split()
        for toolchain in listed.get("toolchains", [])
        if toolchain["name"] == name
        for one in toolchain["options"]
    )


STEPS: dict[str, tuple[Callable[[Day], Findings], float]] = {
    "machine": (machine, 0.02),
    "assumptions": (confirm, 0.13),
    "kernels": (kernels, 0.2),
    "conformance": (conformance, 0.15),
    "sanitizer": (sanitizer, 0.1),
    "measure": (measure, 0.15),
    "models": (models, 0.25),
}
"""Each with its share of the time; what one leaves goes to those behind it."""
