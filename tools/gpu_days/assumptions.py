"""The list of what the stand-ins for NVIDIA's driver and libraries take for granted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent.parent / "docs/gpus.md"
ALL_LISTED = ("unit.backends.Driver", "conformance.gpu.CublasLibrary")
"""Suites that ask the driver or a library, and nothing of ours."""
ROW = re.compile(r"^\| ([^|`]+) \| ([^|]+) \| `([^`|]+)` \|$", re.MULTILINE)


@dataclass
class Assumption:
    of: str
    """Driver, library or instruction set."""
    text: str
    test: str
    """The entry of CTest that shows it on a real GPU."""


def read(page: Path = LIST) -> list[Assumption]:
    return [Assumption(*(cell.strip() for cell in row.groups())) for row in ROW.finditer(page.read_text())]


def problems(known: list[Assumption], tests: set[str]) -> list[str]:
    """Mistakes in the list, a line each: every row has a test, and every test of `ALL_LISTED` a row."""
    found = [f"'{one.text}' is shown by {one.test}, which is no test" for one in known if one.test not in tests]
    listed = {one.test for one in known}
    found += [
        f"{test} is in no row of {LIST.name}"
        for test in sorted(tests)
        if test.startswith(ALL_LISTED) and test.endswith(".gpu") and test not in listed
    ]
    return found if known else ["the list is empty"]
