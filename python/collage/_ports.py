"""Inputs and outputs of compiled models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from collage import _core
from collage.errors import InputError

# ONNX's words for dtypes whose names differ.
_ONNX_TYPES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class Port:
    """An input or an output: its name, shape and dtype.

    Sizes that only a run knows are -1 in the shape; ``dimension_names`` says what the model calls them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    dimension_names: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class NodeArg:
    """An input or an output as ONNX Runtime describes it.

    ``shape`` has a name, or None, for a size that only a run knows; ``type`` is "tensor(float)", "tensor(int64)", ….
    """

    name: str
    shape: list[int | str | None]
    type: str


def ports(rows: list[Any]) -> list[Port]:
    """The ports of rows of the C++ side."""
    return [Port(row["name"], tuple(row["shape"]), row["dtype"], tuple(row.get("dimension_names", ()))) for row in rows]


def node_arg(port: Port) -> NodeArg:
    """A port in ONNX Runtime's words.

    >>> node_arg(Port("ids", (-1, -1, 8), "int64", ("batch", "", "")))
    NodeArg(name='ids', shape=['batch', None, 8], type='tensor(int64)')
    """
    dims = port.dimension_names or ("",) * len(port.shape)
    shape = [size if size >= 0 else dim or None for size, dim in zip(port.shape, dims)]
    return NodeArg(port.name, shape, f"tensor({_ONNX_TYPES.get(port.dtype, port.dtype)})")


def _with_elements(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The values of inputs, those of a list for the sequence x as ``x.0``, ``x.1``, …"""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and name not in names and f"{name}.0" in names:
            values.update({f"{name}.{i}": element for i, element in enumerate(value)})
        else:
            values[name] = value
    return values


def in_order(inputs: Sequence[Port], args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The values of a call in the order of the inputs.

    Raises:
        InputError: one is missing, unknown or given twice.
    """
    names = [port.name for port in inputs]
    tensors: list[Any] = []
    for arg in args:
        begins_sequence = len(tensors) < len(names) and names[len(tensors)].endswith(".0")
        tensors += arg if begins_sequence and isinstance(arg, (list, tuple)) else [arg]
    if len(tensors) > len(names):
        raise InputError(f"the model has {len(names)} inputs, got {len(tensors)}")
    values = dict(zip(names, tensors))
    for name, value in _with_elements(named, names).items():
        if name not in names:
            raise InputError(f"there is no input '{name}'", hint=f"there are: {', '.join(names)}")
        if name in values:
            raise InputError(f"input '{name}' is given twice")
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise InputError(f"no value for input{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}")
    return [values[name] for name in names]


def random_input(port: Port, random: np.random.Generator) -> npt.NDArray[Any]:
    """An array that fits an input: floats in [-1, 1), integers and bools 0 or 1, strings that are empty. Its sizes must be
    known."""
    if -1 in port.shape:
        raise InputError(f"input '{port.name}' is of dynamic shape {port.shape}", hint="give arrays")
    if port.dtype == "string":
        return np.full(port.shape, "", dtype=object)
    array = empty(port.shape, port.dtype)
    is_float = port.dtype.startswith(("float", "bfloat"))
    array[...] = random.uniform(-1, 1, port.shape) if is_float else random.integers(0, 2, port.shape)
    return array


def empty(shape: Sequence[int], dtype: str = "float32") -> npt.NDArray[Any]:
    """Returns an uninitialised NumPy array, aligned to 64 bytes, which executables read and write without a copy.

    >>> empty((2, 3)).ctypes.data % 64
    0

    Args:
        shape: sizes, outermost first.
        dtype: a name such as "float32"; "bfloat16" needs the package ml_dtypes.
    """
    return _core.empty([int(size) for size in shape], dtype)
