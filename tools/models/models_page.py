"""The page docs/models.md, rendered from the results of check_models.py."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tools/models/results"
PAGE = ROOT / "docs/models.md"
COLUMNS = {
    "wheels": ("model", "from", "bound", "dynamic"),
    "architectures": ("model", "from", "dynamic"),
    "tabular": ("model", "from", "dynamic"),
}


def rows_of(name: str) -> dict[str, list[str]]:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def table(name: str) -> str:
    rows = sorted(rows_of(name).values(), key=lambda row: (row[1].split(",")[0], row[0], row[1]))
    lines = [COLUMNS[name], ("---",) * len(COLUMNS[name]), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page() -> str:
    text = (RESULTS / "page.md.in").read_text()
    for name in COLUMNS:
        text = text.replace("{{" + name + "}}", table(name))
    return text
