"""Rows of the table of settings as Python shows them. `tools/settings` uses this file without the package, too."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

WIDTH = 116


def annotation(row: dict[str, Any]) -> str:
    """The type of the argument."""
    python = row["python"]
    optional = python["optional"] and python["type"] != "Targets"  # which None is one of
    return f"{python['type']} | None" if optional else str(python["type"])


def description(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """Describes the argument, and names other settings as Python does."""
    flags = {one["flag"]: one["name"] for one in rows}
    text = " ".join(filter(None, [row["doc"], row["python"]["doc"]]))
    text = re.sub(r"--[a-z]+(?:-[a-z]+)*", lambda flag: f"``{flags.get(flag[0], flag[0])}``", text)
    text = re.sub(r"(?<!`)`(?!`)([^`]*)`(?!`)", r"``\1``", text).replace("``collage.", "`collage.")
    text = re.sub(r"`collage\.(\w+)``", r"`collage.\1`", text)
    default = f" None: {row['default']}." if row["python"]["optional"] else ""
    return text + default


def parameter(row: dict[str, Any]) -> inspect.Parameter:
    """The argument as `inspect.signature` and `help` show it."""
    default = ast.literal_eval(row["python"]["default"])
    return inspect.Parameter(row["name"], inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation(row))


def arguments(rows: Sequence[dict[str, Any]], indent: str) -> str:
    """Lines for the section ``Args`` of a docstring."""
    lines = [f"{row['name']}: {description(row, rows)}" for row in rows]
    return "\n".join(
        textwrap.fill(
            line, WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False,
            break_long_words=False,
        )
        for line in lines
    )  # fmt: skip
