"""The rule on names of toolchains: the core knows none."""

import re
from collections.abc import Iterator

from layers.tree import BACKENDS, Tree, Violation

# Folders of src/backends whose name is also a word of the core: kernels for the processor itself are "native", whichever
# toolchain makes them. Only the word as a string of its own means the toolchain.
ROLES = ("native",)
# Toolchains that are called as a kind of device is: the core knows devices.
_DEVICES = ("cuda",)
_CORE = ("src/", "include/", "tools/", "python/src/")


def _pattern(tree: Tree) -> re.Pattern[str]:
    names = [re.escape(name) for name in tree.backends if name not in (*ROLES, *_DEVICES)]
    strings = [f'"{re.escape(name)}"' for name in tree.backends if name in ROLES]
    # Longer names first: of `onednn_graph` it is not `onednn` that is reported.
    return re.compile("|".join(sorted(names, key=len, reverse=True) + strings) or r"(?!)", re.IGNORECASE)


def _core(tree: Tree) -> list[str]:
    return [file for file in tree.cpp if file.startswith(_CORE) and not file.startswith(f"src/{BACKENDS}/")]


def check_names(tree: Tree) -> Iterator[Violation]:
    """Yields, for each file of the core and each toolchain, the first place in code where the toolchain is named."""
    pattern = _pattern(tree)
    for file in _core(tree):
        code = tree.source(file).code
        lines: dict[str, list[int]] = {}
        for match in pattern.finditer(code):
            lines.setdefault(match[0].strip('"').lower(), []).append(code.count("\n", 0, match.start()) + 1)
        for name, found in lines.items():
            text = f"names toolchain '{name}', which only src/{BACKENDS} may do"
            yield Violation(f"name {file}:{name}", len(found), f"{file}:{found[0]}", text)


def names_in_comments(tree: Tree) -> int:
    """Returns how often comments of the core name a toolchain."""
    pattern = _pattern(tree)
    return sum(len(pattern.findall(tree.source(file).comments)) for file in _core(tree))


def roles_in_code(tree: Tree) -> int:
    """Returns in how many lines of its code the core speaks of a role that has a toolchain's name."""
    pattern = re.compile("|".join(ROLES), re.IGNORECASE)
    return sum(bool(pattern.search(line)) for file in _core(tree) for line in tree.source(file).bare.splitlines())
