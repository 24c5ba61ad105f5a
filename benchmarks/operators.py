#!/usr/bin/env python3
"""operators.py: single operators and short chains of them, beside ONNX Runtime, OpenVINO and the machine's roofline.

    benchmarks/operators.py [--threads 1] [--seconds 2] [--toolchains native] [--build build/dev] [--out FILE] [NAME…]

NAME is part of a row's name; all rows if none is given. Each operator is a model of one and a model of five of them in a row.
The reported time is a quarter of the difference, so that costs per run cancel. If the weights of five come from memory and
those of one would not, the reported time is that of a longer model divided by its length. Element-wise operators have all
results as outputs, lest a chain of them become one pass over memory. Collage compiles each model with the given toolchains
alone and chooses formats as for every model. All run interleaved in this process, float32, same threads.

The roofline of a row is the larger of two times: its multiply-adds at the machine's rate, and its bytes, for copying the input
to the output and reading the weights from the cache level that holds those of the longer model. Rates are bench_machine's, but
copies are measured in turns with the engines, as many in a row of values of the same size, since a shared cache varies from
minute to minute by more than engines differ. A recurrence has two rooflines, one after the other: the product of all inputs,
and the steps, each of which reads its weights again from the level that holds them with a layer's input and output. For exp,
erf and tanh, arithmetic that is not counted makes 2 to 3 the practical limit. Nothing else should run meanwhile.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/models"))
from net import Net, Value  # noqa: E402

LONG = 5  # operators in the longer model
LEVELS = ("first", "near", "shared", "memory")  # caches and what is behind them, as bench_machine calls them
HEADER = (
    "| operator | roofline | Collage | ONNX Runtime | OpenVINO | Collage to the better of both |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


@dataclass(frozen=True)
class Case:
    """One row: `step` adds the operator to a model, its result has the shape of its input."""

    name: str
    shape: tuple[int, ...]
    step: Callable[[Net, Value], Value]
    multiply_adds: float = 0
    weights: int = 0  # elements
    element_wise: bool = False
    steps: int = 0  # of a recurrence: half of the weights and products are for the last step's result


def conv(channels: int, size: int | tuple[int, ...], kernel: tuple[int, ...], groups: int = 1) -> dict:
    taps = math.prod(kernel)
    sizes = size if isinstance(size, tuple) else (size,) * len(kernel)
    pad = tuple(k // 2 for k in kernel)
    return {
        "shape": (1, channels, *sizes),
        "step": lambda net, x: net.conv(x, channels, kernel, pad=pad, groups=groups, bias=True),
        "multiply_adds": math.prod(sizes) * channels * (channels // groups) * taps,
        "weights": channels * (channels // groups) * taps,
    }


def product(rows: int, size: int) -> dict:
    return {
        "shape": (1, rows, size),
        "step": lambda net, x: net.linear(x, size),
        "multiply_adds": rows * size * size,
        "weights": size * size,
    }


def mlp(rows: int, size: int, hidden: int) -> dict:
    return {
        "shape": (1, rows, size),
        "step": lambda net, x: net.linear(net.gelu(net.linear(x, hidden)), size),
        "multiply_adds": 2 * rows * size * hidden,
        "weights": 2 * size * hidden,
    }


def attention(heads: int, rows: int, size: int) -> dict:
    """softmax(Q K / sqrt(size)) V of one value that is all three: no projections."""

    def step(net: Net, x: Value) -> Value:
        keys = net.transpose(x, 0, 1, 3, 2)
        return net.matmul(net.softmax(net.mul(net.matmul(x, keys), 1 / math.sqrt(size))), x)

    return {"shape": (1, heads, rows, size), "step": step, "multiply_adds": 2 * heads * rows * rows * size}


def squeeze_excite(channels: int, size: int, squeezed: int) -> dict:
    def step(net: Net, x: Value) -> Value:
        gate = net.silu(net.conv(net.global_avg_pool(x), squeezed, 1, bias=True))
        return net.mul(x, net.sigmoid(net.conv(gate, channels, 1, bias=True)))

    return {"shape": (1, channels, size, size), "step": step, "weights": 2 * channels * squeezed}


def dense_layer(channels: int, size: int) -> dict:
    """DenseNet's layer; the concatenation is cut back to the channels that came in, so that it can be repeated."""

    def step(net: Net, x: Value) -> Value:
        y = net.conv(net.relu(net.batch_norm(x)), 128, 1)
        y = net.conv(net.relu(net.batch_norm(y)), 32, 3, pad=1)
        return net.slice(net.concat([x, y]), 1, 32, channels + 32)

    return {
        "shape": (1, channels, size, size),
        "step": step,
        "multiply_adds": size * size * (channels * 128 + 128 * 32 * 9),
        "weights": channels * 128 + 128 * 32 * 9,
    }


def recurrent(op: str, gates: int, size: int, steps: int) -> dict:
    return {
        "shape": (steps, 1, size),
        "step": lambda net, x: net.recurrent(op, x, size, bidirectional=False),
        "multiply_adds": steps * gates * 2 * size * size,
        "weights": gates * 2 * size * size,
        "steps": steps,
    }


def rms_norm(net: Net, x: Value) -> Value:
    scale = net.sqrt(net.add(net.reduce_mean(net.mul(x, x)), 1e-5))
    return net.mul(net.div(x, scale), net.uniform((x.shape[-1],), 0.8, 1.2))


def element_wise(name: str, shape: tuple[int, ...], step: Callable[[Net, Value], Value]) -> Case:
    return Case(name, shape, step, element_wise=True)


CASES = [
    Case("conv 1x1, 256 channels 28x28", **conv(256, 28, (1, 1))),
    Case("conv 3x3, 64 channels 56x56", **conv(64, 56, (3, 3))),
    Case("conv 3x3, 512 channels 7x7", **conv(512, 7, (3, 3))),
    Case("conv 3x3, 44 channels 28x28", **conv(44, 28, (3, 3))),
    Case("conv 1x7, 192 channels 17x17", **conv(192, 17, (1, 7))),
    Case("conv 3x3 grouped by 4, 128 channels 56x56", **conv(128, 56, (3, 3), groups=32)),
    Case("conv 3x3 grouped by 16, 512 channels 14x14", **conv(512, 14, (3, 3), groups=32)),
    Case("depthwise 3x3, 144 channels 56x56", **conv(144, 56, (3, 3), groups=144)),
    Case("depthwise 3x3, 384 channels 14x14", **conv(384, 14, (3, 3), groups=384)),
    Case("depthwise 3x3, 960 channels 7x7", **conv(960, 7, (3, 3), groups=960)),
    Case("depthwise 5x5, 672 channels 14x14", **conv(672, 14, (5, 5), groups=672)),
    Case("depthwise 7x7, 96 channels 56x56", **conv(96, 56, (7, 7), groups=96)),
    Case("depthwise 7x7, 384 channels 14x14", **conv(384, 14, (7, 7), groups=384)),
    Case("conv 3x3x3, 64 channels 16x28x28", **conv(64, (16, 28, 28), (3, 3, 3))),
    Case("conv 3x3x3, 256 channels 4x14x14", **conv(256, (4, 14, 14), (3, 3, 3))),
    Case("conv1d 5, 256 channels 512", **conv(256, 512, (5,))),
    Case(
        "transposed conv 4x4 stride 2 and conv 4x4 stride 2 back, 128 channels 16x16",
        (1, 128, 16, 16),
        lambda net, x: net.conv(net.conv_transpose(x, 128, 4, 2, 1), 128, 4, stride=2, pad=1),
        multiply_adds=2 * 16 * 16 * 128 * 128 * 16,
        weights=2 * 128 * 128 * 16,
    ),
    Case("DenseNet's layer, 256 channels 28x28", **dense_layer(256, 28)),
    Case("squeeze and excite, 240 channels 28x28", **squeeze_excite(240, 28, 10)),
    element_wise("silu, 240 channels 28x28", (1, 240, 28, 28), lambda net, x: net.silu(x)),
    Case("max pool 3x3, 256 channels 28x28", (1, 256, 28, 28), lambda net, x: net.max_pool(x, 3, 1, 1)),
    Case("average pool 3x3, 256 channels 28x28", (1, 256, 28, 28), lambda net, x: net.avg_pool(x, 3, 1, 1)),
    Case("resize 2x and max pool 2, 64 channels 28x28", (1, 64, 28, 28), lambda net, x: net.max_pool(net.upsample2(x), 2, 2)),
    Case("layer norm 128x768", (1, 128, 768), lambda net, x: net.layer_norm(x)),
    Case("layer norm 3136x96", (1, 3136, 96), lambda net, x: net.layer_norm(x)),
    Case("RMS norm 64x1024", (1, 64, 1024), rms_norm),
    element_wise("gelu (erf) 128x3072", (1, 128, 3072), lambda net, x: net.gelu(x)),
    element_wise("gelu (tanh) 64x3072", (1, 64, 3072), lambda net, x: net.gelu_tanh(x)),
    Case("softmax 12x128x128", (1, 12, 128, 128), lambda net, x: net.softmax(x)),
    Case("softmax 12x197x197", (1, 12, 197, 197), lambda net, x: net.softmax(x)),
    Case("product 128x768x768", **product(128, 768)),
    Case("product 3136x96x96", **product(3136, 96)),
    Case("MLP 768-3072-768 with gelu, 128 rows", **mlp(128, 768, 3072)),
    Case("attention, 12 heads of 128x64", **attention(12, 128, 64)),
    Case("attention, 12 heads of 197x64", **attention(12, 197, 64)),
    Case("LSTM 256, 64 steps", **recurrent("LSTM", 4, 256, 64)),
    Case("GRU 256, 64 steps", **recurrent("GRU", 3, 256, 64)),
    Case("vector by matrix, 2048", **product(1, 2048)),
]


def model_of(case: Case, length: int) -> tuple[bytes, np.ndarray]:
    net = Net(case.name)
    x = net.image(*case.shape)
    for number in range(length):
        x = case.step(net, x)
        if x.shape != case.shape:
            raise RuntimeError(f"'{case.name}' makes {x.shape} of {case.shape}")
        if case.element_wise or number == length - 1:
            net.output(x, f"output{number}")
    return net.model().SerializeToString(), net.feeds["input"]


def level_of(footprint: int, machine: dict) -> str:
    return next((level for level in LEVELS[:-1] if footprint <= machine[f"{level}_bytes"]), LEVELS[-1])


def copies_run(case: Case, length: int) -> Callable[[], object]:
    """Returns the memory traffic of a model of `length` operators that only copy: inner results alternate between two values."""
    count = length + 1 if case.element_wise else min(length + 1, 4)
    values = [np.ones(case.shape, np.float32) for _ in range(count)]
    between = values[1:-1]
    order = values if case.element_wise else [values[0], *(between[n % 2] for n in range(length - 1)), values[-1]]
    pairs = list(pairwise(order))

    def run() -> None:
        for source, result in pairs:
            np.copyto(result, source)

    return run


def lengths(case: Case, machine: dict) -> list[int]:
    """Returns the lengths of the models; one, if it is so long that costs per run do not matter."""
    last = machine[f"{LEVELS[-2]}_bytes"]
    weights = 4 * case.weights
    return [1, LONG] if LONG * weights <= last else [last // weights + LONG]


def roofline_seconds(case: Case, machine: dict, copying: float) -> float:
    """The least time of one operator; copying: seconds that copying its input to its output takes."""
    ends = 4 * 2 * math.prod(case.shape)
    longer = lengths(case, machine)[-1]
    level = level_of(4 * (longer * case.weights + (longer + 1 if case.element_wise else 2) * math.prod(case.shape)), machine)
    multiplying = case.multiply_adds / machine["multiply_adds_per_second"]
    reading = 4 * case.weights / machine[f"{level}_bytes_per_second"]
    if case.steps:
        again = 4 * case.weights / 2
        rereading = case.steps * again / machine[f"{level_of(again + ends, machine)}_bytes_per_second"]
        return max(multiplying / 2, reading / 2) + max(multiplying / 2, rereading)
    return max(multiplying, copying + reading)


def collage_run(model: bytes, image: np.ndarray, arguments: argparse.Namespace) -> tuple[Callable[[], object], np.ndarray]:
    import collage

    executable = collage.compile(
        model, threads=arguments.threads, toolchains=arguments.toolchains.split(","), database=arguments.database
    )
    instance = executable.instance()
    bound = [collage.empty(image.shape, "float32"), *(collage.empty(port.shape, port.dtype) for port in executable.outputs)]
    bound[0][...] = image
    instance.set_input(0, bound[0])
    for index, output in enumerate(bound[1:]):
        instance.set_output(index, output)
    return instance.run, bound[-1]


def onnxruntime_run(model: bytes, image: np.ndarray, arguments: argparse.Namespace) -> tuple[Callable[[], object], np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(image)]
    binding.bind_ortvalue_input("input", values[0])
    for output in session.get_outputs():
        values.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.empty(output.shape, np.float32)))
        binding.bind_ortvalue_output(output.name, values[-1])
    return lambda: session.run_with_iobinding(binding), values[-1].numpy


def openvino_run(model: bytes, image: np.ndarray, arguments: argparse.Namespace) -> tuple[Callable[[], object], np.ndarray]:
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model),
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": arguments.threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
        },
    )
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(image, shared_memory=True))
    last = len(compiled.outputs) - 1
    return request.infer, lambda: request.get_output_tensor(last).data


ENGINES = [collage_run, onnxruntime_run, openvino_run]


def result_of(result) -> np.ndarray:
    return np.asarray(result() if callable(result) else result)


def medians(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """Returns the median time of one run of each: batches in turns, each after runs that refill the caches.

    One such run is too few: values that it evicts from nearer caches reach the last one during the next run.
    """
    least = 1e-3  # seconds of a batch
    again = 3
    counts = []
    for run in runs:
        for _ in range(again):
            run()
        started = time.perf_counter()
        run()
        counts.append(max(again, math.ceil(least / max(time.perf_counter() - started, 1e-7))))
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 11:
        for run, count, of in zip(runs, counts, times, strict=True):
            for _ in range(again):
                run()
            started = time.perf_counter()
            for _ in range(count):
                run()
            of.append((time.perf_counter() - started) / count)
    return [statistics.median(of) for of in times]


def row(case: Case, machine: dict, arguments: argparse.Namespace) -> str:
    runs, results = [], []
    of_models = lengths(case, machine)
    for length in of_models:
        model, image = model_of(case, length)
        onnx.checker.check_model(onnx.load_from_string(model))
        made = [engine(model, image, arguments) for engine in ENGINES]
        for run, _ in made:
            run()
        results = [result_of(result) for _, result in made]
        largest = max(float(np.abs(results[1]).max()), 1e-30)
        for engine, result in zip(ENGINES, results, strict=True):
            error = float(np.abs(result.reshape(results[1].shape) - results[1]).max()) / largest
            if not error < 1e-3:
                raise RuntimeError(f"'{case.name}': {engine.__name__} differs by {error:.1e} from ONNX Runtime")
        runs += [*(run for run, _ in made), copies_run(case, length)]
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(processors)[: arguments.threads]))
    times = medians(runs, arguments.seconds)
    os.sched_setaffinity(0, processors)
    longer = times[-len(ENGINES) - 1 :]
    if len(of_models) == 1:
        *slopes, copying = [long / of_models[0] for long in longer]
    else:
        *slopes, copying = [(long - short) / (LONG - 1) for short, long in zip(times[: len(longer)], longer, strict=True)]
    limit = roofline_seconds(case, machine, copying)
    ours, best = slopes[0], min(slopes[1:])
    return (
        f"| {case.name} | {limit * 1e6:.1f} us | "
        + " | ".join(f"{slope / limit:.2f}" for slope in slopes)
        + f" | {ours / best:.2f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2, help="for timing a row, about")
    parser.add_argument("--toolchains", default="native", help="what Collage may use, separated by commas")
    parser.add_argument("--build", default=str(ROOT / "build/dev"))
    parser.add_argument("--database", help="tuning database; one that is empty if not given")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    build = Path(arguments.build)
    sys.path.insert(0, str(build / "python"))
    machine = json.loads(subprocess.check_output([build / "bin/bench_machine", str(arguments.threads)]))
    print(
        f"{arguments.threads} thread(s): {machine['multiply_adds_per_second'] * 2e-9:.0f} GFLOP/s; {', '.join(LEVELS)} read: "
        + ", ".join(f"{machine[f'{level}_bytes_per_second'] * 1e-9:.0f}" for level in LEVELS)
        + " GB/s, copied: "
        + ", ".join(f"{machine[f'{level}_copied_per_second'] * 1e-9:.0f}" for level in LEVELS)
        + " GB/s\n"
    )
    print(HEADER, flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        arguments.database = arguments.database or str(Path(folder) / "tuning.db")
        for case in CASES:
            if arguments.names and not any(name in case.name for name in arguments.names):
                continue
            try:
                text = row(case, machine, arguments)
            except RuntimeError as error:
                print(f"operators: {case.name}: {error}", file=sys.stderr)
                failed = 1
                continue
            print(text, flush=True)
            if arguments.out:
                with open(arguments.out, "a", encoding="utf-8") as out:
                    out.write(text + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
