"""Commands of CMake files, as far as rules on libraries need them: no conditions, no functions of the files' own."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r'#[^\n]*|"(?:[^"\\]|\\.)*"|[()]|[^\s()"#]+')


@dataclass(frozen=True)
class Command:
    """`name(args…)` in a file, on a line counted from 1; parentheses among the arguments are dropped."""

    file: str
    line: int
    name: str
    args: list[str]


def commands(file: str, text: str) -> Iterator[Command]:
    """Yields the commands of a CMake file in order."""
    name, line, depth = "", 0, 0
    args: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith("#"):
            continue
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                yield Command(file, line, name, args)
                args = []
        elif depth == 0:
            name, line = token.lower(), text.count("\n", 0, match.start()) + 1
        else:
            args.append(token.strip('"'))


def expanded(words: list[str], variables: dict[str, list[str]]) -> list[str]:
    """Returns the words with `${NAME}` replaced; a word that is one variable becomes all words of its list."""
    result: list[str] = []
    for word in words:
        if (whole := re.fullmatch(r"\$\{(\w+)\}", word)) and whole[1] in variables:
            result += variables[whole[1]]
        else:
            replaced = re.sub(r"\$\{(\w+)\}", lambda match: ";".join(variables.get(match[1], [match[0]])), word)
            result.append(replaced)
    return result


def sources(words: list[str], file: str, known: list[str]) -> list[str]:
    """Returns the files of the tree that words of a command in `file` name, relative to the tree's root."""
    named = (os.path.normpath(os.path.join(os.path.dirname(file), word)) for word in words)
    return [name for name in named if name in known]
