"""Errors. Which class says who must act: the categories of the command line's exit codes."""

from __future__ import annotations

__all__ = [
    "CorruptError",
    "Error",
    "InputError",
    "InternalError",
    "ResourceError",
    "UnavailableError",
    "UnsupportedError",
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


class InputError(Error, ValueError):
    """The input is wrong: a file, an argument, a shape, a text."""


class UnsupportedError(Error, NotImplementedError):
    """Valid input that Collage does not handle."""


class UnavailableError(Error):
    """Something asked for is not on this machine: a toolchain, a device."""


class CorruptError(Error):
    """A file that Collage wrote is damaged."""


class ResourceError(Error):
    """Disk, memory, permissions, time."""


class InternalError(Error):
    """A mistake of Collage's own."""
