"""Compiles ONNX models with bound and with dynamic sizes, runs them, and compares the results with ONNX Runtime's.

Each model is compiled by the command `collage`, as a user would: once with all sizes bound, once with the dimensions
left dynamic that the file leaves dynamic. Inputs are random and meaningful: pixels, waves, indices within a range.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

# Largest |result - expected| by the largest |expected|, by what the model computes in.
FLOAT_BOUND, HALF_BOUND, BYTE_BOUND = 1e-3, 2e-2, 5e-2
TIME_LIMIT_S = 900


@dataclass(frozen=True)
class Model:
    """A model and the sizes to try.

    `sizes` are tried in turn, each a size for every dynamic dimension by its name, or `INPUT[AXIS]`; the first ones are
    bound. `ranges` has the lowest and highest value of inputs; others get floats in 0..1, bytes, integers 0 and 1, and
    `words`. `reference` is a file of the same model that ONNX Runtime computes instead; `dynamic_options` are for compiling
    with dynamic sizes.
    """

    name: str
    origin: str
    path: Path
    sizes: tuple[dict[str, int], ...] = ({},)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)
    bound: float = FLOAT_BOUND
    reference: Path | None = None
    dynamic_options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How one way of compiling a model ended: the largest relative error over `tried` sizes, or why there is none.

    `own` is by how much ONNX Runtime's results differ from each other, with its optimisations and without them.
    """

    error: float | None
    reason: str = ""
    own: float = 0.0
    tried: int = 0
    evaluated: int = 0

    def is_right(self, bound: float) -> bool:
        """Whether the error is within `bound`, or in the order of what rounding alone does to this model."""
        return self.error is not None and self.error <= max(bound, 4 * self.own)

    def text(self, bound: float) -> str:
        if self.error is None:
            return self.reason
        verdict = f"{self.error:.0e}" if self.is_right(bound) else f"wrong: {self.error:.0e}"
        own = f" (ONNX Runtime's own: {self.own:.0e})" if self.error > bound else ""
        sizes = f", {self.tried} sizes" if self.tried > 1 else ""
        return verdict + own + sizes + (f", {self.evaluated} operators evaluated" if self.evaluated else "")


class Checker:
    """Runs one model after the other with one command, in a folder of its own."""

    def __init__(self, collage: Path, folder: Path, threads: int = 1):
        self.collage, self.folder, self.threads = collage, folder, threads

    def bound(self, model: Model) -> Outcome:
        """How compiling for the first sizes ends."""
        return self.outcome(model, model.sizes[:1], bind=True)

    def dynamic(self, model: Model) -> Outcome | None:
        """How compiling for any size ends; None for a model without dynamic dimensions."""
        if not dynamic_dimensions(onnx.load(model.path, load_external_data=False), model):
            return None
        return self.outcome(model, model.sizes, bind=False)

    def outcome(self, model: Model, sizes: tuple[dict[str, int], ...], bind: bool) -> Outcome:
        plain, optimised = (session_of(model.reference or model.path, optimises) for optimises in (False, True))
        proto = onnx.load(model.path, load_external_data=False)
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            compiled = self.compile(model, folder, sizes[0] if bind else {})
            if compiled.returncode != 0:
                return Outcome(None, first_error(compiled.stderr))
            error, own, tried = 0.0, 0.0, 0
            for size in sizes:
                inputs = draw_inputs(proto, model, size)
                try:
                    expected = results_of(plain, inputs)
                except Exception:  # the model itself is not for this size
                    continue
                found = self.run(folder, {k: v for k, v in inputs.items() if k not in model.constants})
                if isinstance(found, str):
                    return Outcome(None, f"at {spelt(size)}: {found}" if not bind else found)
                names = [output.name for output in plain.get_outputs()]
                error, tried = max(error, compare(names, expected, found)), tried + 1
                other = dict(zip(names, results_of(optimised, inputs), strict=True))
                own = max(own, compare(names, expected, other))
            evaluated = sum(row["count"] for row in json.loads(compiled.stdout)["reference_evaluation"])
            return Outcome(error if tried > 0 else None, "ONNX Runtime refuses all sizes", own, tried, evaluated)

    def compile(self, model: Model, folder: Path, bind: dict[str, int]) -> subprocess.CompletedProcess[str]:
        command = [
            self.collage,
            "compile",
            model.path,
            "-o",
            folder / "model.clg",
            "--toolchains",
            "native",
            "--threads",
            str(self.threads),
            "--database",
            folder / "tuning.db",
            "--quiet",
            "--json",
        ]
        command += [] if bind else model.dynamic_options
        for dimension, size in bind.items():
            command += ["--dim", f"{dimension}={size}"]
        for name, value in model.constants.items():
            command += ["--constant", f"{name}={value}"]
        return self.call([*command, "--budget", "0"])

    def run(self, folder: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray] | str:
        """The results by name, or the error."""
        plain = {name: array.astype(str) if array.dtype.kind == "O" else array for name, array in inputs.items()}
        np.savez(folder / "in.npz", **plain)
        command = [self.collage, "run", folder / "model.clg", "--outputs", folder / "out.npz"]
        result = self.call([*command, *(["--inputs", folder / "in.npz"] if inputs else [])])
        if result.returncode != 0:
            return first_error(result.stderr)
        with np.load(folder / "out.npz") as arrays:
            return dict(arrays)

    def call(self, command: list) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [str(part) for part in command], capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 1, "", f"error: no answer within {TIME_LIMIT_S} s")


def session_of(path: Path, optimises: bool) -> onnxruntime.InferenceSession:
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimises else levels.ORT_DISABLE_ALL
    # Without it 8-bit products overflow on processors that have AVX2 but not VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def results_of(session: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """A run's results; a list of maps, one for each row, is the matrix of their values."""
    return [
        np.array([list(row.values()) for row in result], np.float32) if isinstance(result, list) else result
        for result in session.run(None, inputs)
    ]


def given_inputs(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    stored = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in stored]


def dimension_name(value: onnx.ValueInfoProto, axis: int) -> str:
    return value.type.tensor_type.shape.dim[axis].dim_param or f"{value.name}[{axis}]"


def dynamic_dimensions(proto: onnx.ModelProto, model: Model) -> list[str]:
    return [
        dimension_name(value, axis)
        for value in given_inputs(proto)
        if value.name not in model.constants
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_value <= 0
    ]


def draw_inputs(proto: onnx.ModelProto, model: Model, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Random values for every input, the same ones in every run of the script."""
    inputs = {}
    for value in given_inputs(proto):
        random = np.random.default_rng(zlib.crc32(f"{model.name} {value.name}".encode()))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = []
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            name = dimension_name(value, axis)
            size = sizes.get(f"{value.name}[{axis}]", sizes.get(name, dim.dim_value))
            if size <= 0 and dim.dim_value <= 0 and name not in sizes:
                raise SystemExit(f"{model.name}: no size for dimension {name} of input {value.name}")
            shape.append(size)
        if value.name in model.constants:
            inputs[value.name] = np.full(shape, model.constants[value.name], dtype)
        elif dtype.kind == "O":
            inputs[value.name] = random.choice(np.array(model.words, dtype), shape)
        elif dtype.kind in "iub":
            low, high = model.ranges.get(value.name, (0, 255 if dtype == np.uint8 else 1))
            inputs[value.name] = random.integers(int(low), int(high) + 1, shape).astype(dtype)
        else:
            low, high = model.ranges.get(value.name, (0.0, 1.0))
            inputs[value.name] = random.uniform(low, high, shape).astype(dtype)
    return inputs


def compare(names: list[str], expected: list[np.ndarray], found: dict[str, np.ndarray]) -> float:
    """Largest difference by the largest value of each result; infinite where names, shapes, types, NaNs or strings differ."""
    worst = 0.0
    for name, right in zip(names, expected, strict=True):
        if right.dtype.kind in "OU":
            if name not in found or found[name].tolist() != right.tolist():
                return float("inf")
            continue
        if name not in found or found[name].shape != right.shape or found[name].dtype != right.dtype:
            return float("inf")
        left = found[name].astype(np.float64)
        right = right.astype(np.float64)
        if (np.isfinite(left) != np.isfinite(right)).any():
            return float("inf")
        finite = np.isfinite(right)
        if not finite.any():
            continue
        scale = max(float(np.abs(right[finite]).max()), 1e-30)
        worst = max(worst, float(np.abs(left[finite] - right[finite]).max()) / scale)
    return worst


def spelt(sizes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def first_error(text: str) -> str:
    """The line of the error, without the file's name."""
    for line in text.splitlines():
        if "error:" in line:
            return line.split("error:", 1)[1].strip()
    return text.strip().splitlines()[-1] if text.strip() else "ended without a word"


def default_command() -> Path:
    return Path(os.environ.get("COLLAGE") or Path(__file__).resolve().parents[2] / "build/dev/bin/collage")
