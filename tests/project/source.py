"""Reads the source tree that this folder is in."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GENERATED = {"build", ".venv", ".git", "models", "__pycache__"}


def files(*folders: str) -> Iterator[Path]:
    """The files below `folders`, or of the whole tree, that are part of the source: no build, no environment."""
    for folder in folders or (".",):
        for path in sorted((ROOT / folder).rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not GENERATED.intersection(parts):
                yield path


def text(path: str | Path) -> str:
    """The file's text, with bytes that are none replaced."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
