"""ONNX Runtime, from its own wheel (``pip install onnxruntime``), as a toolchain: sub-graphs go out as ONNX.

Whole sub-graphs, as its CPU provider optimises them. A kernel loader in C++ over the wheel's library runs the kernels, so an
executable needs no Python (src/backends/onnxruntime).
"""

from __future__ import annotations

import glob
import importlib.util
import json
import math
import os
import struct
from collections.abc import Sequence
from typing import Any

from collage import _core
from collage._core import Call, Function, IRModule, TensorType, TupleType, Type
from collage.errors import UnsupportedError
from collage.toolchain import Availability, Compiled, Toolchain, register_toolchain

__all__ = ["OnnxRuntime", "register"]

# TensorProto.DataType and bytes of an element.
_ELEMENTS = {
    "float32": (1, 4),
    "uint8": (2, 1),
    "int8": (3, 1),
    "uint16": (4, 2),
    "int16": (5, 2),
    "int32": (6, 4),
    "int64": (7, 8),
    "bool": (9, 1),
    "float64": (11, 8),
    "uint32": (12, 4),
    "uint64": (13, 8),
}

# What ONNX has and its CPU provider (1.31) has not, or only for other dtypes.
_MISSING = {
    "reinterpret": "it has no kernel of BitCast",
    "cumprod": "it has no kernel of CumProd",
}


def _library() -> str:
    """The shared library of the wheel; "" when it is not installed. Does not import it."""
    chosen = os.environ.get("COLLAGE_ONNXRUNTIME", "")
    if chosen:
        return chosen
    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in sorted(glob.glob(os.path.join(folder, "capi", "libonnxruntime.so*"))):
            return path
    return ""


def _tensors(type_: Type | None) -> list[TensorType]:
    """Returns the tensors of a checked type, tuples flattened."""
    if isinstance(type_, TensorType):
        return [type_]
    if isinstance(type_, TupleType):
        return [tensor for field in type_.fields for tensor in _tensors(field)]
    return []


def _port(name: str, tensor: TensorType) -> dict[str, Any]:
    element_type, size = _ELEMENTS[str(tensor.dtype)]
    shape = [-1 if dim is None else int(dim) for dim in tensor.shape]
    if -1 not in shape:  # else the loader multiplies by the sizes of a run
        size *= math.prod(shape)
    return {"name": name, "shape": shape, "element_type": element_type, "bytes": size}


class OnnxRuntime(Toolchain):
    """The toolchain ``onnxruntime``."""

    name = "onnxruntime"
    description = "ONNX Runtime's CPU provider: sub-graphs of any shape, as ONNX"
    revision = "4"
    license = "MIT"
    priority = 5
    fusion = "arbitrary"
    max_depth = 4
    wants_maximal = True

    def probe(self) -> Availability:
        """Looks for the wheel's library."""
        path = _library()
        hint = "pip install onnxruntime, or name its library in $COLLAGE_ONNXRUNTIME"
        if not path:
            return Availability(False, reason="the wheel 'onnxruntime' is not installed", hint=hint)
        if not os.path.exists(path):
            return Availability(False, reason=f"its library '{path}' is not there", hint=hint)
        version = os.path.basename(os.path.realpath(path)).partition(".so.")[2]
        return Availability(True, version or "unknown")

    def supports_call(self, call: Call) -> str | None:
        """Takes calls that can be exported, on float32, integers and bools."""
        op = getattr(call.op, "name", "")
        if op in _MISSING:
            return _MISSING[op]
        for argument in [*call.args, call]:
            for tensor in _tensors(argument.checked_type):
                if str(tensor.dtype) not in _ELEMENTS or str(tensor.dtype) == "float64":
                    return f"its kernels are not for {tensor.dtype}"
        return _core.why_not_onnx(call) or None

    def supports_symbolic_sizes(self, call: Call) -> str | None:
        """Takes calls that can be exported without all of their sizes."""
        return self.supports_call(call)

    def relay_to_runtime(
        self, function: Function, input_layouts: Sequence[str], output_layouts: Sequence[str], threads: int
    ) -> Compiled:
        """An ONNX model, which the loader optimises for the processor that it runs on."""
        inputs = [tensor for param in function.params for tensor in _tensors(param.checked_type)]
        outputs = _tensors(function.body.checked_type)
        input_names = [f"input_{i}" for i in range(len(inputs))]
        output_names = [f"output_{i}" for i in range(len(outputs))]
        for tensor in [*inputs, *outputs]:
            if str(tensor.dtype) not in _ELEMENTS:
                raise UnsupportedError(f"tensors of {tensor.dtype} at its boundary")
        model = _core.to_onnx(IRModule.from_expr(function), output_names, input_names)
        description = {
            "library": _library(),
            "version": self.probe().version,
            "inputs": [_port(name, tensor) for name, tensor in zip(input_names, inputs)],
            "outputs": [_port(name, tensor) for name, tensor in zip(output_names, outputs)],
        }
        text = json.dumps(description).encode()
        return Compiled(struct.pack("<Q", len(text)) + text + model, loader="onnxruntime")


def register() -> None:
    """Registers it; `import collage` does."""
    register_toolchain(OnnxRuntime())
