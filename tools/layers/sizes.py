"""The rules on sizes: lines of files, headers and functions, files of folders."""

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache

from layers.functions import Function, cpp_functions, python_functions
from layers.tree import Tree, Violation

# What a reader takes in at once. What is larger is split by idea, or stands in the baseline.
MAX_FILE_LINES = 500
MAX_HEADER_LINES = 200
MAX_FUNCTION_LINES = 50
MAX_FOLDER_FILES = 30


def sized_files(tree: Tree) -> list[str]:
    """Returns the files that hold code: C++, Python, scripts."""
    return sorted({*tree.cpp, *tree.python, *tree.scripts})


@cache
def functions(tree: Tree, file: str) -> list[Function]:
    """Returns the functions of a C++ or Python file.

    Raises:
        ValueError: the file cannot be read.
    """
    return python_functions(tree.text(file)) if file in tree.python else cpp_functions(tree.source(file))


def folder_sizes(tree: Tree) -> Counter[str]:
    """Returns how many files with code each folder holds, those of its sub-folders not counted."""
    return Counter(os.path.dirname(file) for file in sized_files(tree))


def check_sizes(tree: Tree) -> Iterator[Violation]:
    """Yields files, headers, functions and folders over their size."""
    for folder, count in folder_sizes(tree).items():
        if count > MAX_FOLDER_FILES:
            text = f"the folder has {count} files, more than {MAX_FOLDER_FILES}"
            yield Violation(f"folder {folder}", count, folder, text)
    for file in sized_files(tree):
        lines = tree.text(file).count("\n")
        kind, limit = ("header", MAX_HEADER_LINES) if file.endswith(".h") else ("file", MAX_FILE_LINES)
        if lines > limit:
            yield Violation(
                f"{kind} {file}", lines, f"{file}:{lines}", f"the {kind} has {lines} lines, more than {limit}"
            )
        if file in tree.cpp or file in tree.python:
            yield from _check_functions(tree, file)


def _check_functions(tree: Tree, file: str) -> Iterator[Violation]:
    try:
        found = functions(tree, file)
    except (ValueError, SyntaxError) as error:
        yield Violation(f"unreadable {file}", 1, file, f"cannot find the functions: {error}")
        return
    seen: Counter[str] = Counter()
    for function in found:
        if function.length > MAX_FUNCTION_LINES:
            seen[function.name] += 1
            copy = f"#{seen[function.name]}" if seen[function.name] > 1 else ""  # an overload
            text = f"function '{function.name}' has {function.length} lines, more than {MAX_FUNCTION_LINES}"
            key = f"function {file}:{function.name}{copy}"
            yield Violation(key, function.length, f"{file}:{function.line}", text)
