"""Checks of arguments that many functions take: names, mappings, files, models' bytes."""

from __future__ import annotations

import errno
import io
import os
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from collage.errors import InputError, MissingFileError


def names(given: str | Iterable[str] | None, argument: str, separator: str | None = ",") -> list[str]:
    """Returns a list of names; a text is one name, or several between separators.

    >>> names("native, dnnl", "toolchains"), names(["native"], "toolchains"), names(None, "toolchains")
    (['native', 'dnnl'], ['native'], [])

    Raises:
        InputError: that names the argument, for something else.
    """
    if given is None:
        return []
    if isinstance(given, str):
        parts = [given] if separator is None else given.split(separator)
        return [part.strip() for part in parts if part.strip()]
    found: list[Any] = (
        [given] if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable) else list(given)
    )
    if not all(isinstance(name, str) for name in found):
        raise InputError(f"expected a name or a list of names, got {reprlib.repr(given)}", argument)
    return found


def mapping(given: Any, argument: str, example: str) -> dict[str, Any]:
    """Returns a mapping from names, empty for None.

    Raises:
        InputError: that names the argument and shows ``example``, for something else.
    """
    if given is None:
        return {}
    hint = f"write {argument}={example}"
    if not isinstance(given, Mapping):
        raise InputError(f"expected a dict, got an object of type '{type(given).__name__}'", argument, hint)
    for name in given:
        if not isinstance(name, str):
            raise InputError(f"expected names as the keys of the dict, got {reprlib.repr(name)}", argument, hint)
    return dict(given)


def existing(path: str | os.PathLike[str]) -> str:
    """Returns the path of a file that is there.

    Raises:
        MissingFileError: it is not.
    """
    text = os.fspath(path)
    if not os.path.exists(text):
        raise MissingFileError(f"cannot open: {os.strerror(errno.ENOENT)}", text)
    return text


def session_threads(given: int | None, intra_op: int) -> int | None:
    """Returns the threads of a session that has both a setting and ONNX Runtime's ``intra_op_num_threads``, 0 for unset.

    Raises:
        InputError: they contradict each other.
    """
    if given and intra_op and given != intra_op:
        raise InputError(f"{given} contradicts intra_op_num_threads={intra_op}", "threads", "give one of them")
    return intra_op or given


def content(given: object) -> bytes | None:
    """Returns the bytes of an object that holds or reads some: bytes, a memory view, an open file; None for others.

    Raises:
        InputError: a file that was opened as text.
    """
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    read = getattr(given, "read", None)
    if read is None:
        return None
    found = "" if isinstance(given, io.TextIOBase) else read()
    if not isinstance(found, bytes):
        raise InputError("the file is open as text", str(getattr(given, "name", "")), "open it with mode 'rb'")
    return found
