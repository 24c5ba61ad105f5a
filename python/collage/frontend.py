"""Models from elsewhere."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, Union

from collage import _core
from collage._core import IRModule

__all__ = ["OnnxModel", "from_onnx"]


class _Proto(Protocol):
    def SerializeToString(self) -> bytes: ...


OnnxModel = Union[str, "os.PathLike[str]", bytes, _Proto]
"""A path, the bytes of a model, or an ``onnx.ModelProto``."""


@contextlib.contextmanager
def _as_file(model: OnnxModel) -> Iterator[str]:
    """A file that holds the model; a temporary one unless it is a path already."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    data = model if isinstance(model, bytes) else model.SerializeToString()
    with tempfile.TemporaryDirectory(prefix="collage-") as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        yield path


def from_onnx(
    model: OnnxModel,
    shape: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> IRModule:
    """Reads an ONNX model (opset 7 and newer) into a typed module with one function ``main``.

    Args:
        model: a path (external data is read beside it), the bytes of a model, or an ``onnx.ModelProto``.
        shape: shapes of inputs that the model leaves open, by name.
        constants: arrays for inputs that are the same in every run, by name; they are no parameters then.

    Raises:
        InputError: the file cannot be read, or inputs do not fit.
        UnsupportedError: unknown operators, all of them at once.
    """
    shapes = {name: [int(size) for size in sizes] for name, sizes in (shape or {}).items()}
    with _as_file(model) as path:
        return _core.from_onnx(path, shapes, dict(constants or {}))
