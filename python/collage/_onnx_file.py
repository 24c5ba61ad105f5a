"""Parts of ONNX files that the importer does not keep: their heads, and the names of files with weights."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ModelMetadata:
    """The head of an ONNX model: its producer, domain, version, descriptions and properties."""

    producer_name: str = ""
    domain: str = ""
    description: str = ""
    version: int = (1 << 63) - 1  # of a model without one, as ONNX Runtime has it
    graph_name: str = ""
    graph_description: str = ""
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message of protobuf: number, and value or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield key >> 3, data[at : at + size]
        at += size


def _text(value: int | memoryview) -> str:
    return bytes(value).decode() if isinstance(value, memoryview) else ""


def metadata_of(model: bytes) -> ModelMetadata:
    """The head of a serialised ModelProto, by the numbers of its fields in onnx.proto."""
    texts = {2: "producer_name", 4: "domain", 6: "description"}
    found: dict[str, Any] = {}
    properties: dict[str, str] = {}
    for number, value in _fields(memoryview(model)):
        if number in texts:
            found[texts[number]] = _text(value)
        elif number == 5 and isinstance(value, int):
            found["version"] = value
        elif number == 7 and isinstance(value, memoryview):
            for inner, content in _fields(value):
                if inner in (2, 10):
                    found["graph_name" if inner == 2 else "graph_description"] = _text(content)
        elif number == 14 and isinstance(value, memoryview):
            entry = {inner: _text(content) for inner, content in _fields(value)}
            properties[entry.get(1, "")] = entry.get(2, "")
    return ModelMetadata(**found, custom_metadata_map=properties)


# A StringStringEntryProto "location" → file, as initializers with external data have it.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x7f])")


def external_files(model: bytes, folder: Path) -> list[Path]:
    """The files beside a model that hold its weights."""
    files: dict[Path, None] = {}
    for match in _LOCATION.finditer(model):
        size, _ = _varint(memoryview(match[1]), 0)
        with contextlib.suppress(UnicodeDecodeError):
            path = folder / model[match.end() : match.end() + size].decode()
            if path.is_file():
                files[path] = None
    return list(files)
