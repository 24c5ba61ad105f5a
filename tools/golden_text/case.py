"""Files of golden cases. Cases are split by `// -----`; each is directives, inputs, and what is expected:

    // What the case shows, in one sentence.
    // RUN: SUBCOMMAND ARGUMENTS…     run in a folder of its own; %s is the input, `case.relay`, and the first argument
                                      of commands that read a program, where no other file is
    // TARGET: NAME RULE              `partition` only: a target, see targets.py
    // COST: llvm=2us ext=1us         `partition` only: costs, see targets.py
    // MEASURED: <= 7                 `partition` only: how many costs the search may ask for
    def @main(…) { … }
    // EXPECT:                        what the last command prints; in the next lines, to the end of the case

`// EXPECT-ERROR 4:12: text` and `// HINT: text` stand in place of EXPECT where the last command fails; lines are counted
from the case's first, and an error about no place in the input is `// EXPECT-ERROR: text`. `// EXIT: 3` is an exit code
other than 2. In expectations `{{regular expression}}` stands for what may differ. `// CHECK…` lines are FileCheck's, and
are checked against what the last command prints.

A line `// FILE: NAME` begins another input file; one that is called *.onnx is written in the text format of the onnx
package. Directives that the first case has and a later one has not (RUN, TARGET, COST) hold for that one, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SEPARATOR = "// -----"
_DIRECTIVE = re.compile(r"^// (RUN|TARGET|COST|MEASURED|FILE|CONSTANT): (.*)$")
_EXPECTATION = re.compile(r"^// (EXPECT(-ERROR)?\b|HINT:|EXIT:)")
_INHERITED = ("RUN", "TARGET", "COST")


_VARIABLE = re.compile(r"\{\{(.*?)\}\}")


def fits(wanted: str, found: str) -> bool:
    """Returns whether a line is what an expectation's line says."""
    if "{{" not in wanted:
        return wanted == found
    pieces = _VARIABLE.split(wanted)  # plain text and expressions in turn
    pattern = "".join(piece if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
    return re.fullmatch(pattern, found) is not None


class MalformedCaseError(Exception):
    """A file of cases cannot be read."""


@dataclass
class Case:
    """One case of a file."""

    path: Path
    line: int  # in the file, of its first line
    input: list[str]  # all lines before what is expected
    expectation: list[str]  # the lines from `// EXPECT` on
    directives: dict[str, list[str]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The case's first line."""
        return self.input[0].removeprefix("// ") if self.input else ""

    @property
    def checks(self) -> bool:
        """Whether FileCheck compares what is printed."""
        return any(line.startswith("// CHECK") for line in self.input)

    def is_met_by(self, found: list[str]) -> bool:
        """Whether lines are what the case expects."""
        return len(found) == len(self.expectation) and self.begins_with(found, len(found))

    def begins_with(self, found: list[str], count: int) -> bool:
        """Whether the first `count` lines are what the case expects."""
        return all(map(fits, self.expectation[:count], found[:count]))

    def text(self) -> str:
        """The case as its file has it."""
        return "".join(f"{line}\n" for line in [*self.input, *self.expectation])

    def files(self) -> dict[str, str]:
        """Returns the contents of the input files by name; `case.relay` keeps the lines' numbers."""
        name, contents = "case.relay", dict[str, list[str]]()
        for line in self.input:
            found = _DIRECTIVE.match(line)
            if found and found.group(1) == "FILE":
                name = found.group(2).strip()
                contents[name] = []
            else:
                contents.setdefault(name, []).append(line)
        return {name: "\n".join(lines) + "\n" for name, lines in contents.items()}


def _read_case(path: Path, first: int, lines: list[str]) -> Case:
    end = next((i for i, line in enumerate(lines) if _EXPECTATION.match(line)), len(lines))
    case = Case(path, first, lines[:end], lines[end:])
    for line in case.input:
        if found := _DIRECTIVE.match(line):
            case.directives.setdefault(found.group(1), []).append(found.group(2).strip())
    return case


def read_cases(path: Path) -> list[Case]:
    """Returns the cases of a file. Raises MalformedCaseError where the first one has no command."""
    cases: list[Case] = []
    lines: list[str] = []
    first = 1
    everything = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate([*everything, SEPARATOR], start=1):
        if line != SEPARATOR:
            lines.append(line)
            continue
        cases.append(_read_case(path, first, lines))
        lines, first = [], number + 1
    if "RUN" not in cases[0].directives:
        raise MalformedCaseError(f"{path}:1: the first case has no line '// RUN: …'")
    for case in cases:
        for name in _INHERITED:
            if name not in case.directives and name in cases[0].directives:
                case.directives[name] = cases[0].directives[name]
    return cases
