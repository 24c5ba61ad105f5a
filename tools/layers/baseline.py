"""The baseline: violations that the tree had before a rule, each of which may only shrink."""

from collections.abc import Iterable
from pathlib import Path

from layers.tree import Violation

BASELINE = "tools/check_layers.baseline"
_HEADER = """\
# Violations of `tools/check_layers` that are known: KIND PLACE FIGURE, sorted. One that is new or larger fails the check, and so
# does one that is smaller or gone until `tools/check_layers --update` has written this file again.
"""


def read(path: Path) -> dict[str, int]:
    """Returns the figure of each key; none where there is no file.

    Raises:
        ValueError: a line has no figure; names the line.
    """
    entries: dict[str, int] = {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if line and not line.startswith("#"):
            key, _, figure = line.rpartition(" ")
            if not key or not figure.isdigit():
                raise ValueError(f"{path}:{number}: error: expected 'KIND PLACE FIGURE', got '{line}'")
            entries[key] = int(figure)
    return entries


def write(path: Path, entries: dict[str, int]) -> None:
    path.write_text(_HEADER + "".join(f"{key} {figure}\n" for key, figure in sorted(entries.items())))


def compare(known: dict[str, int], violations: Iterable[Violation]) -> list[str]:
    """Returns one message for each violation that is new or larger than known, and for each known one that is not so large."""
    messages = []
    rest = dict(known)
    for violation in violations:
        figure = rest.pop(violation.key, None)
        if figure is None:
            messages.append(str(violation))
        elif violation.figure > figure:
            messages.append(f"{violation} ({BASELINE} allows {figure})")
        elif violation.figure < figure:
            shrunk = f"'{violation.key}' is down from {figure} to {violation.figure}"
            messages.append(f"{BASELINE}: error: {shrunk}: run tools/check_layers --update")
    messages += [f"{BASELINE}: error: '{key}' is gone: run tools/check_layers --update" for key in rest]
    return messages
