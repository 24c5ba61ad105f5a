"""Writes test cases for operators of com.microsoft and ai.onnx.ml: random attributes, and what ONNX Runtime computes.

The files are those of write_cases.py. ONNX Runtime has no kernels for processors of some operators; their cases have
what NumPy computes by the operator's documentation.

Usage: write_microsoft_cases.py FOLDER [--of microsoft|ml] [--seed N] [--cases N]
"""

import argparse
import pathlib
from collections.abc import Iterator

import microsoft.attention
import microsoft.fused
import microsoft.quantised  # noqa: F401
import ml.features
import ml.linear
import ml.trees  # noqa: F401  these register their cases
import numpy as np
import onnx
import onnxruntime
from microsoft.case import MAKERS, Case, Maker, Random
from onnx import TensorProto, helper, numpy_helper


def model_of(name: str, one: Case) -> onnx.ModelProto:
    """The model of one node."""
    inputs, initializers, names = [], [], []
    for i, value in enumerate(one.inputs):
        if value is None:
            names.append("")
            continue
        names.append(f"x{i}")
        if i in one.weights:
            initializers.append(numpy_helper.from_array(np.asarray(value), f"x{i}"))
        else:
            inputs.append(
                helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            )
    outputs = [f"y{i}" if wanted else "" for i, wanted in enumerate(one.outputs)]
    node = helper.make_node(name, names, outputs, domain=one.domain, name="node", **one.attributes)
    results = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in outputs if y]
    for result in results:
        result.ClearField("type")
    graph = helper.make_graph([node], name, inputs, results, initializers)
    opsets = [helper.make_opsetid("", 17)]
    if one.domain:
        opsets.append(helper.make_opsetid(one.domain, one.version))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def prefix(maker: Maker) -> str:
    """Returns the domain of a maker's operator: the name of its package."""
    return maker.__module__.split(".")[0]


def cases(of: str, seed: int, count: int) -> Iterator[tuple[str, str, Case]]:
    """Names, operators and cases: `count` of each operator of the package `of`."""
    for index, (name, maker) in enumerate(MAKERS.items()):
        for i in range(count if prefix(maker) == of else 0):
            yield (
                f"test_{prefix(maker)}_{name.lower()}_{i}",
                name.split(".")[0],
                maker(Random(seed * 100_003 + index * 1009 + i)),
            )


def stored(array: np.ndarray) -> np.ndarray:
    """Returns an array that NumPy's files hold: strings in place of Python's objects."""
    return array.astype(str) if array.dtype.kind == "O" else array


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--of", choices=["microsoft", "ml"], default="microsoft", help="whose operators")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=6)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for old in (*args.folder.glob("*.onnx"), *args.folder.glob("*.npz")):
        old.unlink()
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    # On processors without VNNI, sums of bytes with signs saturate; an optimisation of this level makes them bytes without.
    options.add_session_config_entry("session.x64quantprecision", "1")
    written = 0
    for file, name, one in cases(args.of, args.seed, args.cases):
        model = model_of(name, one)
        feeds = {f"x{i}": x for i, x in enumerate(one.inputs) if x is not None and i not in one.weights}
        results = one.results
        if results is None:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            results = session.run(None, feeds)
        arrays = {f"in.{i}": stored(x) for i, x in enumerate(feeds.values())}
        largest = 1.0
        for i, y in enumerate(results):
            arrays[f"out.{i}"] = stored(y)
            if y.dtype.kind == "f":
                largest = max(largest, float(np.abs(y).max(initial=0)))
        arrays["rtol"] = np.array(one.tolerance, np.float64)
        arrays["atol"] = np.array(max(one.tolerance * largest, one.steps), np.float64)
        onnx.save(model, args.folder / f"{file}.onnx")
        np.savez(args.folder / f"{file}.npz", **arrays)
        written += 1
    print(f"{written} cases of {sum(prefix(maker) == args.of for maker in MAKERS.values())} operators")


if __name__ == "__main__":
    main()
