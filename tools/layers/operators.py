"""The rule on names of operators: what code must know of an operator is a trait in its row."""

import re
from collections.abc import Iterator

from layers.tree import BACKENDS, Tree, Violation

ROWS = "src/ir/ops/"
# Rows, importers and exporters, toolchains' tables, and rules that rewrite or match operators by name.
_ALLOWED = (ROWS, "src/frontend/", f"src/{BACKENDS}/", "src/transform/passes/", "src/partition/rules/")
# Names of operators that are also words of other lists: a choice of `--precision`.
_HOMONYMS = ("any",)

# In rows: what is assigned to `name`, and the first argument of a function that makes a row.
_ROW = re.compile(r'(?:\.name = |(?<![\w.>])[A-Z]\w*[({]\s*)"([a-z][a-z0-9_.]*)"')
_ATTRIBUTE = re.compile(r'"([a-z][a-z0-9_]*)",\s*AttrKind::')
_LITERAL = re.compile(r'"([a-z][a-z0-9_.]*)"')
# Code that makes a call is as good as a rule. A plain word means an operator where it is compared, or beside another one.
_MAKES = re.compile(r"\b(?:MakeCall|TypedCall|CallPattern)\(\s*$")
_COMPARES = re.compile(r"[=!]=\s*$")
_BESIDE = re.compile(r"\s*,\s*")


def operator_names(tree: Tree) -> set[str]:
    """Returns the names in the rows of operators, and the prefixes of names, such as "nn."."""
    rows = [tree.source(file).code for file in tree.cpp if file.startswith(ROWS)]
    found = {name for code in rows for name in _ROW.findall(code)}
    found -= {name for code in rows for name in _ATTRIBUTE.findall(code)}
    return found | {name[: name.index(".") + 1] for name in found if "." in name}


def _names_in(code: str, known: set[str], prefixes: tuple[str, ...]) -> Iterator[re.Match[str]]:
    literals = list(_LITERAL.finditer(code))
    is_prefixed = [bool(prefixes) and match[1].startswith(prefixes) for match in literals]
    is_known = [match[1] in known for match in literals]

    def are_listed(i: int, j: int) -> bool:
        """Whether two literals, one after the other, name operators and stand side by side."""
        between = code[literals[i].end() : literals[j].start()]
        names = all(is_prefixed[at] or is_known[at] for at in (i, j))
        return names and _BESIDE.fullmatch(between) is not None

    for i, match in enumerate(literals):
        before = code[max(0, match.start() - 40) : match.start()]
        is_compared = is_known[i] and match[1] not in _HOMONYMS and _COMPARES.search(before) is not None
        is_listed = (i > 0 and are_listed(i - 1, i)) or (i + 1 < len(literals) and are_listed(i, i + 1))
        if (is_prefixed[i] or is_compared or is_listed) and not _MAKES.search(before):
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
