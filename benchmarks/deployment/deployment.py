#!/usr/bin/env python3
"""deployment.py: a model as a program, beside ONNX Runtime and OpenVINO as they are deployed: a Python process with the wheel.

    .venv/bin/python benchmarks/deployment/deployment.py [--threads 1] [--budget 60s] [--processes 7] [--runs 300] [MODEL…]

MODEL is as for whole_models.py; its inputs are those of the .npz beside it. `collage compile --emit program` writes the program,
and all contenders take turns, each in --processes fresh processes, pinned to one processor for one thread. Columns are medians
over these, with files in the page cache:

    on disk             the program; for engines the model's file and the files of the installed wheel, without Python and NumPy
    first result        from the start of the process; of the program until it ends, with the outputs written
    p50                 median of --runs runs after that
    peak memory         the largest resident set (VmHWM), of pages of files, too
    another instance    private memory by which a process grows that can compute one more at the same time, all processors at hand:
                        by an instance of `--emit shared`, a run of the same session in ONNX Runtime, a stream in OpenVINO

OpenVINO computes in float32, as the others do. Every contender's outputs are compared with those of the .npz (rtol 1e-3, atol
1e-4). Prints a Markdown table. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from whole_models import SHAPES, find_models, models_folder, pinned_to_one, print_rows, run

ONE_PROCESS = Path(__file__).with_name("one_process.py")
HEADER = (
    "| model | deployed as | on disk | first result | p50 | peak memory | another instance |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
POLL_SECONDS = 0.002
WHEELS = {"ONNX Runtime": "onnxruntime", "OpenVINO": "openvino"}


@dataclass(frozen=True)
class Sample:
    """One process of a contender."""

    first_seconds: float
    p50_seconds: float
    peak_bytes: float
    instance_bytes: float


class Program:
    """What `collage compile --emit program` writes, and the library that `--emit shared` does."""

    name = "a program, by Collage"

    def __init__(self, model: str, inputs: Path, arguments: argparse.Namespace, folder: Path) -> None:
        self._arguments, self._inputs, self._folder = arguments, inputs, folder
        self._program, self._library = folder / "program", folder / "libdeployed.so"
        command = [str(Path(arguments.build) / "bin/collage"), "compile", f"{models_folder() / model}.onnx", "--quiet"]
        command += ["--threads", str(arguments.threads), "--budget", arguments.budget]
        command += [part for shape in SHAPES.get(model, []) for part in ("--shape", shape)]
        for kind, file in (("program", self._program), ("shared", self._library)):
            run([*command, "--emit", kind, "-o", str(file)])
        self.bytes = self._program.stat().st_size

    def sample(self) -> Sample:
        pinned = pinned_to_one(self._arguments)
        outputs = self._folder / "outputs.npz"
        command = [*pinned, str(self._program), "--inputs", str(self._inputs)]
        started = time.perf_counter()
        run([*command, "--outputs", str(outputs)])
        first = time.perf_counter() - started
        check_outputs(outputs, self._inputs)
        printed, peak = run_watched([*command, "--runs", str(self._arguments.runs)])
        median = re.search(r"p50 ([0-9.]+) ms", printed)
        if median is None:
            raise RuntimeError(f"{self._program} printed no median: {printed}")
        instance = another_instance("Collage", self._library, self._inputs, self._arguments)
        return Sample(first, float(median[1]) / 1e3, peak, instance)


class Engine:
    """A Python process with an engine's wheel."""

    def __init__(self, name: str, model: str, inputs: Path, arguments: argparse.Namespace, folder: Path) -> None:
        self._engine, self._arguments = name, arguments
        self.name = f"Python, {name} {distribution(WHEELS[name]).version}"
        self._outputs = folder / "outputs.npz"
        self._inputs = inputs
        self._file = file = Path(f"{models_folder() / model}.onnx")
        more = ["--threads", str(arguments.threads), "--runs", str(arguments.runs), "--outputs", str(self._outputs)]
        self._command = [*pinned_to_one(arguments), sys.executable, str(ONE_PROCESS), name, str(file), str(inputs), *more]
        wheel = sum(Path(one.locate()).stat().st_size for one in distribution(WHEELS[name]).files or [] if one.locate().is_file())
        self.bytes = file.stat().st_size + wheel

    def sample(self) -> Sample:
        started = time.perf_counter()
        with subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            first = time.perf_counter() - started
            rest = process.stdout.read()
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(self._command)}\nexit code {process.returncode}")
        check_outputs(self._outputs, self._inputs)
        said = json.loads(rest)
        instance = another_instance(self._engine, self._file, self._inputs, self._arguments)
        return Sample(first, said["p50_seconds"], said["peak_bytes"], instance)


def another_instance(engine: str, file: Path, inputs: Path, arguments: argparse.Namespace) -> float:
    """Bytes by which private memory grows with each instance, from one to as many as there are processors."""
    most = len(os.sched_getaffinity(0)) // arguments.threads
    if most < 2:
        raise RuntimeError("instances cannot run at the same time: this process has too few processors")
    command = [sys.executable, str(ONE_PROCESS), engine, str(file), str(inputs), "--threads", str(arguments.threads)]
    one, all_ = (json.loads(run([*command, "--instances", str(count)]))["private_bytes"] for count in (1, most))
    return (all_ - one) / (most - 1)


def run_watched(command: list[str]) -> tuple[str, float]:
    """Runs a command; returns what it prints, and the largest resident set in bytes, which only grows while it runs."""
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
            peak = max(peak, int(found[1]) if found else 0)
            time.sleep(POLL_SECONDS)
        printed = process.stdout.read()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nexit code {process.returncode}\n{printed}")
    return printed, peak * 1024.0


def check_outputs(outputs: Path, inputs: Path) -> None:
    """Compares arrays of equal names; those of `inputs` are beside it."""
    import numpy as np

    with np.load(outputs) as got, np.load(inputs.with_name("wanted.npz")) as wanted:
        for name in wanted:
            np.testing.assert_allclose(got[name], wanted[name], rtol=1e-3, atol=1e-4, err_msg=f"output '{name}'")


def split_arrays(model: str, folder: Path) -> Path:
    """Writes inputs.npz and wanted.npz of the model's arrays, in.NAME and out.NAME; returns the first."""
    import numpy as np

    file = Path(f"{models_folder() / model}.npz")
    if not file.exists():
        raise RuntimeError(f"there are no inputs for the model: '{file}' is missing; ./setup models writes it")
    with np.load(file) as arrays:
        for prefix, name in (("in.", "inputs.npz"), ("out.", "wanted.npz")):
            np.savez(folder / name, **{key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)})
    return folder / "inputs.npz"


def row_of(model: str, contender: Program | Engine, samples: list[Sample]) -> str:
    first, p50, peak, instance = (
        statistics.median(getattr(sample, name) for sample in samples)
        for name in ("first_seconds", "p50_seconds", "peak_bytes", "instance_bytes")
    )
    cells = [model, contender.name, f"{contender.bytes / 1e6:.1f} MB", f"{1e3 * first:.0f} ms", f"{1e3 * p50:.3f} ms"]
    return f"| {' | '.join([*cells, f'{peak / 1e6:.1f} MB', f'{instance / 1e6:.1f} MB'])} |"


def rows(model: str, arguments: argparse.Namespace, folder: Path) -> str:
    inputs = split_arrays(model, folder)
    contenders = [Program(model, inputs, arguments, folder), *(Engine(name, model, inputs, arguments, folder) for name in WHEELS)]
    samples: list[list[Sample]] = [[] for _ in contenders]
    for turn in range(arguments.processes + 1):
        for contender, kept in zip(contenders, samples, strict=True):
            sample = contender.sample()
            if turn > 0:  # the first one has read the files
                kept.append(sample)
    return "\n".join(row_of(model, contender, kept) for contender, kept in zip(contenders, samples, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=["full/mobilenet_v2"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="60s", help="for measuring candidates")
    parser.add_argument("--processes", type=int, default=7, help="of each contender")
    parser.add_argument("--runs", type=int, default=300, help="of each process, after the first")
    parser.add_argument("--build", default=str(Path(__file__).resolve().parents[2] / "build/dev"))
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    arguments.models = find_models(arguments.models)
    return print_rows("deployment", HEADER, rows, arguments)


if __name__ == "__main__":
    sys.exit(main())
