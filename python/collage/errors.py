"""Errors, in classes by their cause: the categories of the command line's exit codes."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "CorruptError",
    "Error",
    "InputError",
    "InternalError",
    "MissingFileError",
    "ResourceError",
    "UnavailableError",
    "UnsupportedError",
    "UnsupportedNode",
]


class Error(RuntimeError):
    """A request that cannot go on; the base of all errors of this package.

    Its text says what was found and what was wanted. ``message``, ``where`` (a file, a place in a text, a node) and
    ``hint`` (what to do) are its parts; the last two may be empty.
    """

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        self.message = message
        self.where = where
        self.hint = hint
        text = f"{where}: error: {message}" if where else message
        super().__init__(f"{text}\nhint: {hint}" if hint else text)

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...]]:
        return type(self), (self.message, self.where, self.hint)


class InputError(Error, ValueError):
    """The input is wrong: a file, an argument, a shape, a text."""


class MissingFileError(InputError, FileNotFoundError):
    """There is no such file. ``filename`` is its path."""

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.errno, self.filename = errno.ENOENT, where

    def __str__(self) -> str:
        return str(self.args[0])


class UnsupportedNode(NamedTuple):
    """A node of an ONNX model that cannot be imported; ``reason`` is empty where Collage has no such operator."""

    name: str
    op: str
    reason: str


class UnsupportedError(Error, NotImplementedError):
    """Valid input that Collage does not handle.

    ``nodes`` has the nodes of an ONNX model that cannot be imported: all whose operators are unknown, or the first that
    has a form which is not supported. It is empty for other errors.
    """

    def __init__(
        self, message: str, where: str = "", hint: str = "", nodes: Iterable[tuple[str, str, str]] = ()
    ) -> None:
        super().__init__(message, where, hint)
        self.nodes = [UnsupportedNode(*node) for node in nodes]

    def __reduce__(self) -> tuple[type[Error], tuple[Any, ...]]:
        return type(self), (self.message, self.where, self.hint, self.nodes)


class UnavailableError(Error):
    """Something asked for is not on this machine: a toolchain, a device."""


class CorruptError(Error):
    """A file that Collage wrote is damaged."""


class ResourceError(Error):
    """Disk, memory, permissions, time."""


class InternalError(Error):
    """A mistake of Collage's own."""
