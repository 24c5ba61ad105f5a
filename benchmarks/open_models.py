#!/usr/bin/env python3
"""open_models.py: models with dynamic sizes, compiled once, beside ONNX Runtime and OpenVINO with the same sizes left open.

    .venv/bin/python benchmarks/open_models.py [--threads 1] [--budget 60s] [--seconds 3] [--unnamed 2] [--no-static]
                                               [--keep DIR] [--out FILE] [NAME…]

NAME is one of tools/models/dynamic_models.py (default: all). Files that are missing are made first: PyTorch exports them in an
environment of its own, ~/.cache/collage/torch-env, which is set up if it is not there (5 GB). For each model it runs

    collage compile --tune-at   with the model's named sizes
    collage compile --dim       for each of these sizes alone, unless --no-static
    a process                   that compares the results at ten sizes with ONNX Runtime's, and times all of them in turn,
                                at the named sizes and at --unnamed others that no compiler was told of

Both engines keep all sizes open; OpenVINO computes in float32. A run gets arrays that are bound before. Prints a row for each
model and size, and geometric means; ratios below 1 mean that Collage is faster. --keep DIR keeps executables and the tuning
database, and takes those that are there. Nothing else should run meanwhile.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/models"))

from dynamic_models import MODELS, OpenModel, Sizes, find  # noqa: E402
from whole_models import keep_kernels_beside, models_folder, pinned_to_one, run  # noqa: E402

HEADER = (
    "| model | size | named | Collage | ONNX Runtime | OpenVINO | to the faster | to its own size | largest error |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
COMPILED_HEADER = "| model | named sizes | to compile | bytes | bytes of the model |\n| --- | --- | --- | --- | --- |"
EXPORT_PACKAGES = ("torch==2.11.0", "transformers==5.24.0", "onnx", "onnxscript", "onnxruntime")
# Runs that take less are timed behind one that is not, so that each engine finds its data in the cache.
SETTLE_BELOW_SECONDS = 5e-3
# Largest difference by the largest value; where it is larger, four times what ONNX Runtime's own optimisations change.
ERROR_BOUND = 1e-3


def spelt(sizes: Sizes) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


# ---- files ----


def export(names: list[str]) -> None:
    """Writes the files of models that are not there."""
    folder = models_folder()
    missing = [name for name in names if not find(name).file(folder).exists()]
    if "ocr_detector" in missing:
        run([sys.executable, str(ROOT / "tools/models/fetch_ocr.py"), "--out", str(folder)])
        target = find("ocr_detector").file(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        name_dimensions(folder / "ocr/detector.onnx", target, find("ocr_detector"))
        missing.remove("ocr_detector")
    if not missing:
        return
    environment = Path.home() / ".cache/collage/torch-env"
    if not environment.exists():
        run([sys.executable, "-m", "venv", str(environment)])
        run([str(environment / "bin/pip"), "install", "-q", *EXPORT_PACKAGES])
    maker = str(ROOT / "tools/models/export_open_models.py")
    run([str(environment / "bin/python"), maker, "--folder", str(folder), *missing])


def name_dimensions(source: Path, target: Path, model: OpenModel) -> None:
    """Writes the file with the names that dynamic_models.py has for its dimensions."""
    import onnx

    proto = onnx.load(source)
    for value, given in zip(proto.graph.input, model.inputs, strict=True):
        for dim, size in zip(value.type.tensor_type.shape.dim, given.shape, strict=True):
            if isinstance(size, str):
                dim.dim_param = size
    onnx.save(proto, target)


def compile_one(
    model: OpenModel, output: Path, options: list[str], arguments: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Compiles unless the file is there; returns seconds and bytes."""
    notes = output.with_suffix(".json")
    if not (output.exists() and notes.exists()):
        command = [str(Path(arguments.build) / "bin/collage"), "compile", str(model.file(models_folder()))]
        command += ["-o", str(output), "--quiet", "--json", "--threads", str(arguments.threads)]
        command += ["--budget", arguments.budget, "--database", str(folder / "tuning.db"), *options]
        started = time.monotonic()
        report = json.loads(run(command))
        made = {"seconds": time.monotonic() - started, "bytes": output.stat().st_size, "report": report}
        notes.write_text(json.dumps(made))
    return json.loads(notes.read_text())


def compile_all(model: OpenModel, arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Compiles the model for any size and for each named one; returns what the first took, and the files of the others."""
    by_name = {name: sorted({str(sizes[name]) for sizes in model.named}) for name in model.dimensions()}
    open_options = [f"--tune-at={name}={','.join(sizes)}" for name, sizes in by_name.items()]
    open_options += [f"--dim={name}={least}..{largest}" for name, least, largest in model.ranges]
    made = compile_one(model, folder / f"{model.name}.clg", open_options, arguments, folder)
    files = []
    for number, sizes in enumerate(() if arguments.no_static else model.named):
        file = folder / f"{model.name}.{number}.clg"
        compile_one(model, file, bound_options(model, sizes), arguments, folder)
        files.append(str(file))
    return made, files


def bound_options(model: OpenModel, sizes: Sizes) -> list[str]:
    shapes = [(given.name, given.at(sizes)) for given in model.inputs]
    return [part for name, shape in shapes for part in ("--shape", f"{name}={'x'.join(map(str, shape))}")]


# ---- a process that runs them all ----


def draw_inputs(model: OpenModel, sizes: Sizes) -> dict[str, Any]:
    """Random arrays, the same ones in every run; masks have a zero behind each sample but the first."""
    import numpy as np

    import collage

    arrays = {}
    for given in model.inputs:
        random = np.random.default_rng(zlib.crc32(f"{model.name} {given.name}".encode()))
        shape = given.at(sizes)
        array = collage.empty(shape, "float32" if given.largest is None else "int64")
        if given.largest is None:
            array[...] = random.standard_normal(shape)
        else:
            array[...] = random.integers(0, given.largest + 1, shape)
        if given.name.endswith("attention_mask"):
            array[...] = 1
            if shape[0] > 1 and shape[1] > 1:
                array[1:, -1] = 0
        arrays[given.name] = (
            array.view(np.int64) if given.largest is not None else array
        )  # the type that OpenVINO knows
    return arrays


class Engines:
    """ONNX Runtime and OpenVINO with all sizes open, and executables of Collage."""

    def __init__(self, model: OpenModel, arguments: argparse.Namespace):
        import onnxruntime
        import openvino

        import collage

        self.path = path = str(model.file(models_folder()))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        settings = {
            "INFERENCE_NUM_THREADS": str(arguments.threads),
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self.compiled = openvino.Core().compile_model(path, "CPU", settings)
        self.request = self.compiled.create_infer_request()
        self.executable = collage.load(arguments.executable)

    def onnxruntime(self, inputs: dict[str, Any]) -> Callable[[], object]:
        binding = self.session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for output in self.session.get_outputs():
            binding.bind_output(output.name, "cpu")
        return lambda: self.session.run_with_iobinding(binding)

    def openvino(self, inputs: dict[str, Any]) -> Callable[[], object]:
        import openvino

        tensors = {name: openvino.Tensor(array, shared_memory=True) for name, array in inputs.items()}

        def infer() -> None:
            for name, tensor in tensors.items():
                self.request.set_tensor(name, tensor)
            self.request.infer()

        return infer

    def collage(self, inputs: dict[str, Any]) -> Callable[[], object]:
        return self.executable._bound([inputs[port.name] for port in self.executable.inputs])

    def error(self, inputs: dict[str, Any]) -> float:
        """The largest difference of Collage's results from ONNX Runtime's by the largest value."""
        return largest_difference(self.session.run(None, inputs), list(self.executable.run(inputs).values()))

    def own_error(self, inputs: dict[str, Any]) -> float:
        """The largest difference of ONNX Runtime's results, with its optimisations, from its own without them."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        plain = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        return largest_difference(plain.run(None, inputs), self.session.run(None, inputs))


def largest_difference(expected: list[Any], found: list[Any]) -> float:
    """Returns the largest difference by the largest value; infinite where shapes differ."""
    import numpy as np

    worst = 0.0
    for right, left in zip(expected, found, strict=True):
        if left.shape != right.shape:
            return math.inf
        if right.size:
            worst = max(worst, float(np.abs(left - right).max() / max(float(np.abs(right).max()), 1e-30)))
    return worst


def static_runs(file: str, model: OpenModel, inputs: dict[str, Any]) -> Callable[[], object]:
    import collage

    executable = collage.load(file)
    return executable._bound([inputs[port.name] for port in executable.inputs])


def time_in_turn(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Medians of runs that take turns."""

    def timed(call: Callable[[], object]) -> float:
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    first = {name: min(timed(call) for _ in range(3)) for name, call in runs.items()}
    settles = {name: took < SETTLE_BELOW_SECONDS for name, took in first.items()}
    a_round = sum(took * (2 if settles[name] else 1) for name, took in first.items())
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(max(9, min(2000, int(seconds / a_round)))):
        for name, call in runs.items():
            if settles[name]:
                call()
            samples[name].append(timed(call))
    return {name: statistics.median(took) for name, took in samples.items()}


def measure(arguments: argparse.Namespace) -> None:
    """Prints, as JSON, the error at each size and the medians at those that are timed."""
    model = find(arguments.measure)
    engines = Engines(model, arguments)
    answer = []
    for number, sizes in enumerate(model.named + model.others):
        inputs = draw_inputs(model, sizes)
        error = max(engines.error(inputs) for _ in range(3))
        # Some networks amplify what rounding does.
        own = engines.own_error(inputs) if error > ERROR_BOUND else 0.0
        row: dict[str, Any] = {"sizes": spelt(sizes), "error": error, "is_wrong": error > max(ERROR_BOUND, 4 * own)}
        if number < len(model.named) + arguments.unnamed:
            runs = {"collage": engines.collage(inputs), "onnxruntime": engines.onnxruntime(inputs)}
            runs["openvino"] = engines.openvino(inputs)
            if number < len(arguments.static):
                runs["static"] = static_runs(arguments.static[number], model, inputs)
            row |= {"named": number < len(model.named), "times": time_in_turn(runs, arguments.seconds)}
        answer.append(row)
    print(json.dumps(answer))


# ---- the table ----


def measured(
    model: OpenModel, executable: Path, files: list[str], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Runs `measure` in a process of its own."""
    command = [*pinned_to_one(arguments), "env", f"PYTHONPATH={Path(arguments.build) / 'python'}", sys.executable]
    command += [__file__, "--measure", model.name, "--executable", str(executable), "--threads", str(arguments.threads)]
    command += ["--seconds", str(arguments.seconds), "--unnamed", str(arguments.unnamed)]
    for file in files:
        command += ["--static", file]
    return json.loads(run(command).splitlines()[-1])


def ratios_of(row: dict[str, Any]) -> tuple[float, float | None]:
    """Collage's time by that of the faster engine, and by that of the executable for this size alone."""
    times = row["times"]
    own = times["collage"]
    return own / min(times["onnxruntime"], times["openvino"]), own / times["static"] if "static" in times else None


def line(model: OpenModel, row: dict[str, Any], error: float) -> str:
    to_faster, to_static = ratios_of(row)
    times = [f"{row['times'][name] * 1e3:.3f} ms" for name in ("collage", "onnxruntime", "openvino")]
    return (
        f"| {model.title()} | {row['sizes']} | {'yes' if row['named'] else 'no'} | {' | '.join(times)} | {to_faster:.3f} "
        f"| {'' if to_static is None else f'{to_static:.3f}'} | {error:.0e} |"
    )


def mean_of(name: str, ratios: list[float]) -> str:
    if not ratios:
        return f"{name}: none"
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return f"{name}: geometric mean {mean:.3f} over {len(ratios)}, at most {max(ratios):.3f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[model.name for model in MODELS])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="60s", help="for measuring candidates of each part of a compilation")
    parser.add_argument("--seconds", type=float, default=3, help="for the timing of each size, about")
    parser.add_argument("--unnamed", type=int, default=2, help="sizes to time that no compiler was told of")
    parser.add_argument("--no-static", action="store_true", help="do not compile the model for single sizes")
    parser.add_argument("--build", default=str(ROOT / "build/dev"))
    parser.add_argument("--keep", type=Path, help="keep executables there, and take those that are there")
    parser.add_argument("--out", help="also append the rows to this file")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--executable", help=argparse.SUPPRESS)
    parser.add_argument("--static", action="append", default=[], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        return print_tables(arguments, folder)


def print_tables(arguments: argparse.Namespace, folder: Path) -> int:
    export(arguments.names)
    keep_kernels_beside(folder / "tuning.db")
    print(HEADER, flush=True)
    kinds: dict[str, list[float]] = {"named sizes": [], "to the same size alone": [], "other sizes": []}
    compiled, wrong = [], 0
    for name in arguments.names:
        model = find(name)
        try:
            made, files = compile_all(model, arguments, folder)
            rows = measured(model, folder / f"{name}.clg", files, arguments)
        except RuntimeError as error:
            print(f"open_models: {name}: {error}", file=sys.stderr, flush=True)
            wrong += 1
            continue
        error = max(row["error"] for row in rows)
        wrong += any(row["is_wrong"] for row in rows)
        for row in [row for row in rows if "times" in row]:
            text = line(model, row, error)
            print(text, flush=True)
            if arguments.out:
                with open(arguments.out, "a", encoding="utf-8") as out:
                    out.write(text + "\n")
            to_faster, to_static = ratios_of(row)
            kinds["named sizes" if row["named"] else "other sizes"].append(to_faster)
            if to_static is not None:
                kinds["to the same size alone"].append(to_static)
        named = ", ".join(spelt(sizes) for sizes in model.named)
        size = model.file(models_folder()).stat().st_size
        compiled.append(f"| {model.title()} | {named} | {made['seconds']:.0f} s | {made['bytes']:,} | {size:,} |")
    print("\n" + "\n".join(mean_of(kind, ratios) for kind, ratios in kinds.items()))
    print("\n".join(["", COMPILED_HEADER, *compiled]))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
