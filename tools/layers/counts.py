"""Figures of the tree, as a table: what is large, and what is still to go."""

import os
import re
from collections import Counter
from collections.abc import Iterator

from layers.includes import private_collage_includes, private_includes_of_users
from layers.names import names_in_comments, roles_in_code
from layers.operators import check_operators
from layers.sizes import MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_HEADER_LINES, folder_sizes, functions, sized_files
from layers.tree import Tree

_GTEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(", re.MULTILINE)
_CTEST = re.compile(r"\badd_test\(|\bcollage_(?:unit_test|cases|full_cases)\(")


def _occurrences(tree: Tree, files: list[str], pattern: str) -> int:
    return sum(len(re.findall(pattern, tree.source(file).bare)) for file in files)


def _golden_cases(text: str) -> int:
    """Counts the cases of a golden file: several with `// RUN:`, one module before passes, none in one after passes."""
    if re.search(r"^// RUN: ", text, re.MULTILINE):
        return len(re.findall(r"^// -----$", text, re.MULTILINE)) + 1
    return len(re.findall(r"^// passes:", text, re.MULTILINE))


def folder_table(tree: Tree) -> Iterator[str]:
    """Yields a line for each folder with code: its files and lines, its functions, and how many are over their size."""
    lines: Counter[str] = Counter()
    large: Counter[str] = Counter()
    count: Counter[str] = Counter()
    long: Counter[str] = Counter()
    for file in sized_files(tree):
        folder = os.path.dirname(file)
        length = tree.text(file).count("\n")
        lines[folder] += length
        large[folder] += length > (MAX_HEADER_LINES if file.endswith(".h") else MAX_FILE_LINES)
        if file in tree.cpp or file in tree.python:
            found = functions(tree, file)
            count[folder] += len(found)
            long[folder] += sum(function.length > MAX_FUNCTION_LINES for function in found)
    files = folder_sizes(tree)
    yield f"{'folder':36} {'files':>6} {'too long':>9} {'lines':>8} {'functions':>10} {'too long':>9}"
    for folder in sorted(files):
        sizes = f"{files[folder]:6} {large[folder]:9} {lines[folder]:8} {count[folder]:10} {long[folder]:9}"
        yield f"{folder:36} {sizes}"
    totals = [sum(counter.values()) for counter in (files, large, lines, count, long)]
    yield "{:36} {:6} {:9} {:8} {:10} {:9}".format("total", *totals)


def figures(tree: Tree) -> dict[str, int]:
    """Returns figures of the whole tree by what they count."""
    own = [file for file in tree.cpp if file.startswith(("src/", "include/"))]
    tests = [file for file in tree.cpp if file.startswith("tests/")]
    golden = [file for file in tree.files if file.startswith("tests/golden/") and file.endswith(".relay")]
    lists = [file for file in tree.files if os.path.basename(file) == "CMakeLists.txt"]
    return {
        "static_cast<size_t> in src and include": _occurrences(tree, own, r"static_cast<(?:std::)?size_t>"),
        '#include "collage/…" of a private file': private_collage_includes(tree),
        "private includes in tools and python/src": private_includes_of_users(tree),
        "toolchains' names in comments of the core": names_in_comments(tree),
        "lines of the core that speak of native code": roles_in_code(tree),
        "operators' names outside of rows, tables, rules": sum(found.figure for found in check_operators(tree)),
        "gtest cases": sum(len(_GTEST.findall(tree.source(file).bare)) for file in tests),
        "golden cases": sum(_golden_cases(tree.text(file)) for file in golden),
        "ctest declarations, those of loops once": sum(len(_CTEST.findall(tree.text(file))) for file in lists),
    }


def table(tree: Tree) -> str:
    lines = [f"{name:48} {figure:6}" for name, figure in figures(tree).items()]
    return "\n".join([*folder_table(tree), "", *lines])
