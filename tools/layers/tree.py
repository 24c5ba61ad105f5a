"""The files that rules look at, and the stages that they belong to."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from layers.source_text import SourceText

FOLDERS = ("src", "include", "tools", "python", "tests", "benchmarks", "examples")
CPP = (".cc", ".h", ".c")
STAGES = "src/stages.txt"
BACKENDS = "backends"


@dataclass(frozen=True)
class Violation:
    """A rule that is broken somewhere.

    `key` names the violation in the baseline, without line numbers, so that it stays when lines are added above it;
    `figure` says how large it is: lines, files, or how often it occurs.
    """

    key: str
    figure: int
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: error: {self.text}"


@dataclass
class Stages:
    """The rows of `src/stages.txt`, in order."""

    library_of: dict[str, str] = field(default_factory=dict)
    stage_of_header: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> "Stages":
        stages = cls()
        for line in (root / STAGES).read_text().splitlines():
            if words := line.partition("#")[0].split():
                stage, library, *headers = words
                stages.library_of[stage] = library
                stages.stage_of_header |= dict.fromkeys(headers, stage)
        return stages

    @cached_property
    def order(self) -> list[str]:
        return list(self.library_of)

    @cached_property
    def libraries(self) -> list[str]:
        return list(dict.fromkeys(self.library_of.values()))

    def why_not(self, user: str, used: str) -> str | None:
        """Returns why stage `user` may not include or link stage `used`, or None if it may."""
        if self.order.index(used) > self.order.index(user):
            return f"'{used}' is below '{user}' in {STAGES}"
        mine, other = self.library_of[user], self.library_of[used]
        if self.libraries.index(other) > self.libraries.index(mine):
            return f"'{used}' is in collage_{other}, which collage_{mine}, with '{user}', must not need"
        return None


class Tree:
    """A checkout: all files of `FOLDERS`, hidden ones and those of caches excepted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stages = Stages.read(root)
        self.files = sorted(self._walk())
        self._known = set(self.files)
        self._sources: dict[str, SourceText] = {}

    def _walk(self) -> Iterator[str]:
        for top in FOLDERS:
            for folder, folders, names in os.walk(self.root / top):
                folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
                yield from (os.path.relpath(os.path.join(folder, name), self.root) for name in names)

    def text(self, file: str) -> str:
        return self.source(file).text

    def source(self, file: str) -> SourceText:
        if file not in self._sources:
            self._sources[file] = SourceText((self.root / file).read_text(errors="replace"))
        return self._sources[file]

    @cached_property
    def cpp(self) -> list[str]:
        return [file for file in self.files if file.endswith(CPP)]

    @cached_property
    def scripts(self) -> list[str]:
        """Scripts without an ending in their name."""
        return [file for file in self.files if "." not in os.path.basename(file) and self.text(file).startswith("#!")]

    @cached_property
    def python(self) -> list[str]:
        scripts = [file for file in self.scripts if "python" in self.text(file).partition("\n")[0]]
        return [file for file in self.files if file.endswith(".py")] + scripts

    @cached_property
    def backends(self) -> list[str]:
        """The names of the folders in `src/backends`."""
        parts = [file.split("/") for file in self.files if file.startswith(f"src/{BACKENDS}/")]
        return sorted({part[2] for part in parts if len(part) > 3})

    def has(self, file: str) -> bool:
        return file in self._known

    def has_toolchain(self, backend: str) -> bool:
        return self.has(f"src/{BACKENDS}/{backend}/toolchain.cc")

    def included(self, includer: str, path: str) -> str | None:
        """Returns the file of the tree that `#include "path"` in `includer` finds, or None."""
        beside = os.path.join(os.path.dirname(includer), path)
        return next((file for file in (f"include/{path}", f"src/{path}", beside) if self.has(file)), None)

    def stage(self, file: str) -> str | None:
        """Returns the stage of a file in `src` or `include`, or None if no row names one."""
        parts = file.split("/")
        if parts[0] == "src" and len(parts) > 2:
            return parts[1] if parts[1] in self.stages.library_of else None
        if parts[:2] == ["include", "collage"]:
            listed = self.stages.stage_of_header.get("/".join(parts[2:]))
            return listed or (parts[2] if parts[2] in self.stages.library_of else None)
        return None

    def backend(self, file: str) -> str | None:
        """Returns the folder of `src/backends` that holds the file, or None."""
        parts = file.split("/")
        return parts[2] if parts[:2] == ["src", BACKENDS] and len(parts) > 3 else None
