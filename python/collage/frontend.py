"""Models from elsewhere, and for elsewhere."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, Union, cast

from collage import _arguments, _core
from collage._core import Function, IRModule
from collage.errors import InputError

__all__ = ["OnnxModel", "from_onnx", "onnx_operators", "to_onnx"]


class _Proto(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 (protobuf's name)


OnnxModel = Union[str, "os.PathLike[str]", bytes, "IO[bytes]", _Proto]
"""A path, the bytes of a model, a file that is open for reading bytes, or an ``onnx.ModelProto``."""


@contextlib.contextmanager
def _as_file(model: OnnxModel) -> Iterator[str]:
    """A file that holds the model; a temporary one unless it is a path already."""
    if isinstance(model, (str, os.PathLike)):
        yield _arguments.existing(model)
        return
    data = _arguments.content(model)
    if data is None:
        serialise = getattr(model, "SerializeToString", None)
        if serialise is None:
            raise InputError(
                f"expected a path, bytes, an open file or an onnx.ModelProto, got '{type(model).__name__}'",
                "model",
                "torch.onnx.export writes a PyTorch model as ONNX" if hasattr(model, "state_dict") else "",
            )
        data = serialise()
    with tempfile.TemporaryDirectory(prefix="collage-") as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def _shapes_and_lengths(
    given: Mapping[str, Sequence[int] | Sequence[Sequence[int]] | None],
) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Shapes of tensors, elements of the sequence x as ``x.0``, ``x.1``, …; and the lengths of sequences."""
    shapes: dict[str, list[int]] = {}
    lengths: dict[str, int] = {}
    for name, sizes in given.items():
        if sizes is None:
            lengths[name] = 0
        elif not isinstance(sizes, Iterable) or isinstance(sizes, str):
            raise InputError(f"expected shapes by the names of inputs, got {name!r}: {sizes!r}", "shapes")
        elif any(isinstance(size, Sequence) for size in sizes):
            lengths[name] = len(sizes)
            for i, element in enumerate(sizes):
                shapes[f"{name}.{i}"] = [int(size) for size in cast("Sequence[int]", element)]
        else:
            shapes[name] = [int(size) for size in cast("Sequence[int]", sizes)]
    return shapes, lengths


def from_onnx(
    model: OnnxModel,
    shapes: Mapping[str, Sequence[int] | Sequence[Sequence[int]] | None] | None = None,
    constants: Mapping[str, Any] | None = None,
    dims: Mapping[str, int | Sequence[int]] | None = None,
) -> IRModule:
    """Reads an ONNX model into a typed module with one function ``main``.

    Args:
        model: a path (external data is read beside it), the bytes of a model, an open file, or an ``onnx.ModelProto``.
        shapes: shapes of inputs, by name, with -1 for sizes that stay as they are. Dimensions that neither the model nor this
            gives become ``?``. An input that is a sequence has a list of shapes, one for each element; an optional input
            that is not there has None.
        constants: arrays for inputs that are the same in every run, by name; they are no parameters then.
        dims: sizes of dimensions, by name (``"batch"``, or ``"x[0]"``): one, or the least and the largest.

    Raises:
        InputError: the file cannot be read, or inputs do not fit.
        UnsupportedError: unknown operators, all of them at once.
    """
    tensors, lengths = _shapes_and_lengths(_arguments.mapping(shapes, "shapes", '{"x": (1, 3, 224, 224)}'))
    sizes = _arguments.mapping(dims, "dims", '{"batch": 8}')
    pairs = {name: (given, given) if isinstance(given, int) else given for name, given in sizes.items()}
    ranges = {name: (int(given[0]), int(given[-1])) for name, given in pairs.items()}
    values = _arguments.mapping(constants, "constants", '{"x": array}')
    with _as_file(model) as path:
        return _core.from_onnx(path, tensors, values, ranges, lengths)


def to_onnx(
    mod: IRModule | Function,
    path: str | os.PathLike[str] | None = None,
    output_names: str | Sequence[str] | None = None,
) -> bytes | None:
    """The ONNX model (opset 17, newer where an operator is younger) that computes what a module's ``main`` does.

    Parameters become inputs of the same names, ``?`` dimensions dynamic ones, constants initializers; functions that are
    called are inlined, ``if`` becomes If, a function that calls itself last Loop.

    Args:
        mod: a module, or a function.
        path: where to write the model; constants of more than a GiB go to a file beside it. None returns its bytes.
        output_names: names of the results, tuples flattened; None for those of the model that the module is from.

    Returns:
        The model, serialised, for ``onnx.load_from_string``; None when it was written.

    Raises:
        UnsupportedError: there are data types, references, closures, recursion that is no loop, or an operator or
            attribute that ONNX has no words for.
        ResourceError: more than 2 GB without a path.

    >>> from collage import relay
    >>> x = relay.var("x", shape=(2, 3))
    >>> model = to_onnx(relay.Function([x], relay.nn.relu(x)), output_names=["y"])
    >>> print(from_onnx(model).main.body, end="")
    free_var %x: Tensor[(2, 3), float32];
    nn.relu(%x)
    """
    module = IRModule.from_expr(mod) if isinstance(mod, Function) else mod
    names = _arguments.names(output_names, "output_names", separator=None)
    if path is None:
        return _core.to_onnx(module, names)
    _core.write_onnx(module, os.fspath(path), names)
    return None


def onnx_operators() -> list[str]:
    """The operators of Relay that `to_onnx` writes.

    >>> "nn.conv2d" in onnx_operators()
    True
    """
    return _core.onnx_operators()
