"""Running a golden case: its files are written into an empty folder, its commands run there, the last one is compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from golden_text import targets
from golden_text.case import Case, MalformedCaseError

ROOT = Path(__file__).resolve().parent.parent.parent
INPUT = "case.relay"
WRONG_INPUT = 2  # the exit code of a wrong request
_ERROR = re.compile(r"^(?:(?P<place>\S.*?): )?error: (?P<text>.*)$")
_PLACE = re.compile(rf"^{re.escape(INPUT)}:(\d+:\d+)$")
_MEASURED = re.compile(r"^(<=|=) (\d+)$")
# Files of the onnx package from their texts, {path: text}; its checker would refuse what Collage is to refuse.
_WRITE_ONNX = """
import json, sys, onnx, onnx.parser
for path, text in json.load(sys.stdin).items():
    onnx.save(onnx.parser.parse_model(text), path)
"""


class MissingToolError(Exception):
    """This machine lacks something that a case needs."""


@dataclass
class Found:
    """The output of a case's last command, as lines of an expectation; `problem` says what else is wrong."""

    expectation: list[str] = field(default_factory=list)
    problem: str = ""


def _arguments(text: str) -> list[str]:
    words = shlex.split(text)
    if words[0] in ("write", "flip", "cut", "sql"):
        return words
    if words[0] in _READERS and (len(words) == 1 or words[1].startswith("-")):
        words.insert(1, "%s")
    return [word.replace("%s", INPUT) for word in words]


# Commands that read a program or a model: the case's input is their first argument, where no other file is.
_READERS = {"compile", "tune", "import", "export", "opt", "parse", "dataflow", "subgraph", "candidates", "rewrite"}
_READERS |= {"partition", "lower", "run"}


def _edit(folder: Path, words: list[str]) -> None:
    """Runs one of the commands that change files: write FILE TEXT, flip FILE OFFSET, cut FILE SIZE, sql FILE TEXT."""
    path = folder / words[1]
    if words[0] == "write":
        path.write_text(words[2].encode().decode("unicode_escape"), encoding="utf-8")
    elif words[0] == "cut":
        path.write_bytes(path.read_bytes()[: int(words[2])])
    elif words[0] == "flip":
        data = bytearray(path.read_bytes())
        data[int(words[2])] ^= 0xFF
        path.write_bytes(data)
    else:
        with sqlite3.connect(path) as database:
            database.executescript(words[2])


def _errors(text: str) -> list[str]:
    """Returns `// EXPECT-ERROR` and `// HINT` lines for what a command said on standard error."""
    lines = []
    for line in text.splitlines():
        if found := _ERROR.match(line):
            place = found.group("place") or ""
            if inside := _PLACE.match(place):
                lines.append(f"// EXPECT-ERROR {inside.group(1)}: {found.group('text')}")
            else:
                lines.append(f"// EXPECT-ERROR: {place + ': ' if place else ''}{found.group('text')}")
        elif line.startswith("hint: "):
            lines.append(f"// HINT: {line.removeprefix('hint: ')}")
    # The parser of options says what is wrong in its first line, and in the second one that there is --help.
    return lines or [f"// EXPECT-ERROR: {line}" for line in text.splitlines() if not line.startswith("Run with --help")]


class Runner:
    """Runs cases with the programs of a build, each in a folder of its own. A context: it removes the folders."""

    def __init__(self, build: Path) -> None:
        self.bin = build / "bin"
        self.folders = tempfile.TemporaryDirectory(prefix="collage-golden-")
        self.count = 0
        self.models: dict[str, Path] = {}
        self.reverse_targets = False
        if not (self.bin / "collage").exists():
            raise MissingToolError(f"there is no {self.bin / 'collage'}")
        self.environment = {**os.environ, "COLLAGE_DATABASE": "tuning.db", "NO_COLOR": "1"}

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folders.cleanup()

    def run(self, case: Case) -> Found:
        """Runs the case's commands. All but the last must succeed."""
        self.count += 1
        folder = Path(self.folders.name) / str(self.count)
        folder.mkdir()
        for name, text in case.files().items():
            if not name.endswith(".onnx"):
                (folder / name).write_text(text, encoding="utf-8")
            elif model := self.models.get(text):
                shutil.copy(model, folder / name)
        commands = [_arguments(line) for line in case.directives["RUN"]]
        for words in commands[:-1]:
            if words[0] in ("write", "flip", "cut", "sql"):
                _edit(folder, words)
                continue
            done = self._command(folder, words)
            if done.returncode != 0:
                return Found(problem=f"'{shlex.join(words)}' ended with {done.returncode}: {done.stderr}")
        if commands[-1][0] == "partition" and "TARGET" in case.directives:
            return self._partition(folder, case, commands[-1])
        if commands[-1][0] == "lower":
            commands[-1] += [f"--constant={text}" for text in case.directives.get("CONSTANT", [])]
        done = self._command(folder, commands[-1])
        if done.returncode != 0 or not case.checks:
            return self._compared(folder, done)
        return self._checked(folder, done.stdout, case)

    def write_models(self, cases: list[Case]) -> None:
        """Writes the ONNX models of `cases`, all by one process: importing the onnx package takes half a second."""
        texts = [text for case in cases for name, text in case.files().items() if name.endswith(".onnx")]
        self.models = {text: Path(self.folders.name) / f"{i}.onnx" for i, text in enumerate(texts)}
        if not texts:
            return
        python = ROOT / ".venv" / "bin" / "python"
        if not python.exists():
            raise MissingToolError(f"there is no {python}")
        wanted = {}
        for text, path in self.models.items():
            wanted[str(path)] = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
        subprocess.run([str(python), "-c", _WRITE_ONNX], input=json.dumps(wanted), text=True, check=True)

    def _command(self, folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
        program = ["test_lower"] if words[0] == "lower" else ["collage", words[0]]
        command = [str(self.bin / program[0]), *program[1:], *words[1:]]
        return subprocess.run(
            command, cwd=folder, env=self.environment, capture_output=True, text=True, errors="replace", check=False
        )

    @staticmethod
    def _compared(folder: Path, done: subprocess.CompletedProcess[str]) -> Found:
        if "terminate called" in done.stderr or done.returncode < 0:
            return Found(problem=f"it ended with {done.returncode}: {done.stderr}")
        if done.returncode == 0:
            return Found(["// EXPECT:", *done.stdout.splitlines()])
        exit_code = [f"// EXIT: {done.returncode}"] if done.returncode != WRONG_INPUT else []
        return Found([*_errors(done.stderr.replace(f"{folder}/", "")), *exit_code])

    def _checked(self, folder: Path, text: str, case: Case) -> Found:
        program = next((tool for name in ("FileCheck-22", "FileCheck") if (tool := shutil.which(name))), None)
        if program is None:
            raise MissingToolError("there is no FileCheck-22; ./setup installs it with llvm-22-tools")
        command = [program, "--dump-input=never", INPUT]
        done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)
        return Found(case.expectation, done.stderr if done.returncode != 0 else "")

    def _partition(self, folder: Path, case: Case, words: list[str]) -> Found:
        """Chooses partitions by targets and costs of the directives: the choice, and the program with --emit relay."""
        try:
            listed = targets.targets(case.directives["TARGET"])
            listed = listed[::-1] if self.reverse_targets else listed
            table = targets.costs(case.directives.get("COST", []))
        except ValueError as error:
            raise MalformedCaseError(f"{case.path}:{case.line}: {error}") from error
        emit = ["--emit", "relay"] if words[-2:] == ["--emit", "relay"] else []
        words = words[:-2] if emit else words
        words += ["--targets", json.dumps(listed), "--costs", json.dumps(table)]
        done = self._command(folder, [*words, "--json"])
        if done.returncode != 0:
            return self._compared(folder, done)
        report = json.loads(done.stdout)
        found = Found(["// EXPECT:", *targets.summary(report)])
        for limit in case.directives.get("MEASURED", []):
            found.problem = found.problem or _over(limit, report["searched"]["costs"])
        if emit:
            done = self._command(folder, [*words, *emit])
            found.expectation += done.stdout.splitlines()
        return found


def _over(limit: str, measured: int) -> str:
    """Returns how many costs a search asked for where `limit`, such as "<= 7", is fewer."""
    found = _MEASURED.match(limit)
    if not found:
        raise MalformedCaseError(f"cannot read MEASURED: {limit}")
    most = int(found.group(2))
    is_kept = measured <= most if found.group(1) == "<=" else measured == most
    return "" if is_kept else f"asked for {measured} costs, where {limit} is wanted"
