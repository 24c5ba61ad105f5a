"""The findings of the steps, as a page."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Findings:
    """The findings of one step: a row for each thing that was tried."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    remark: str = ""
    seconds: float = 0

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1))

    def page(self) -> str:
        lines = [f"## {self.title}", "", f"{self.seconds:.0f} s. {self.remark}".strip(), ""]
        if self.rows:
            lines += [_row(self.columns), _row(["---"] * len(self.columns)), *map(_row, self.rows), ""]
        return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def write(folder: Path, names: list[str], heading: str) -> Path:
    """Renders the findings that are there, in the order of `names`, and says which steps have none."""
    parts, missing = [f"# {heading}", ""], []
    for name in names:
        file = folder / f"{name}.json"
        if file.exists():
            parts.append(Findings(**json.loads(file.read_text())).page())
        else:
            missing.append(name)
    if missing:
        parts.append(f"Not done: {', '.join(missing)}.\n")
    page = folder / "report.md"
    page.write_text("\n".join(parts))
    return page
