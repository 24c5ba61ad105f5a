"""The rule on names of operators: what code must know of an operator is a trait in its row."""

import re
from collections.abc import Iterator

from layers.tree import BACKENDS, Tree, Violation

ROWS = "src/ir/ops/"
# Rows, importers and exporters, toolchains' tables, and rules that rewrite or match operators by name.
_ALLOWED = (ROWS, "src/frontend/", f"src/{BACKENDS}/", "src/transform/passes/", "src/partition/rules/")
# Names of operators that are also words of other lists: a choice of `--precision`, and a quantile.
_HOMONYMS = ("any", "minimum")

# In rows: what is assigned to `name`, and the first argument of a function that makes a row.
_ROW = re.compile(r'(?:\.name = |(?<![\w.>])[A-Z]\w*[({]\s*)"([a-z][a-z0-9_.]*)"')
_ATTRIBUTE = re.compile(r'"([a-z][a-z0-9_]*)",\s*AttrKind::')
_LITERAL = re.compile(r'"([a-z][a-z0-9_.]*)"')
# Code that makes a call is as good as a rule; code that compares a plain word with `==`, or lists it, means an operator.
_MAKES = re.compile(r"\b(?:MakeCall|TypedCall|CallPattern)\(\s*$")
_COMPARES = re.compile(r"(?:[=!]=|[{,])\s*$")


def operator_names(tree: Tree) -> set[str]:
    """Returns the names in the rows of operators, and the prefixes of names, such as "nn."."""
    rows = [tree.source(file).code for file in tree.cpp if file.startswith(ROWS)]
    found = {name for code in rows for name in _ROW.findall(code)}
    found -= {name for code in rows for name in _ATTRIBUTE.findall(code)}
    return found | {name[: name.index(".") + 1] for name in found if "." in name}


def _names_in(code: str, known: set[str], prefixes: tuple[str, ...]) -> Iterator[re.Match[str]]:
    for match in _LITERAL.finditer(code):
        before = code[max(0, match.start() - 40) : match.start()]
        name = match[1]
        is_prefixed = bool(prefixes) and name.startswith(prefixes)
        is_plain = name in known and name not in _HOMONYMS and _COMPARES.search(before) is not None
        if (is_prefixed or is_plain) and not _MAKES.search(before):
            yield match


def check_operators(tree: Tree) -> Iterator[Violation]:
    """Yields each file that names operators although none of its business, with the number of names."""
    known = operator_names(tree)
    prefixes = tuple(name for name in known if name.endswith("."))
    for file in tree.cpp:
        if not file.startswith("src/") or file.startswith(_ALLOWED):
            continue
        code = tree.source(file).code
        found = list(_names_in(code, known, prefixes))
        if found:
            line = code.count("\n", 0, found[0].start()) + 1
            text = f"names operator '{found[0][1]}': what it must know is a trait in the row (OpDef)"
            yield Violation(f"operator {file}", len(found), f"{file}:{line}", text)
