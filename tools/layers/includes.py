"""Rules on includes: their order, their cycles, and which headers are public."""

from collections import defaultdict
from collections.abc import Iterator

from layers.tree import BACKENDS, STAGES, Tree, Violation


def check_includes(tree: Tree) -> Iterator[Violation]:
    """Yields what is wrong with `src/stages.txt`, and includes that go against it."""
    yield from _check_table(tree)
    counts: dict[str, int] = defaultdict(int)
    found: dict[str, tuple[str, str]] = {}
    for file in tree.cpp:
        if tree.stage(file) is None:
            continue
        for include in tree.source(file).includes():
            if why := _why_not(tree, file, include.path):
                key = f"include {file}:{include.path}"
                counts[key] += 1
                found[key] = f"{file}:{include.line}", f'includes "{include.path}": {why}'
    for key, (where, text) in found.items():
        yield Violation(key, counts[key], where, text)


def _check_table(tree: Tree) -> Iterator[Violation]:
    for stage in tree.stages.order:
        if not (tree.root / "src" / stage).is_dir():
            yield Violation(f"stage {stage}", 1, STAGES, f"there is no folder 'src/{stage}'")
    for header in tree.stages.stage_of_header:
        if not tree.has(f"include/collage/{header}"):
            yield Violation(f"stage {header}", 1, STAGES, f"there is no header 'include/collage/{header}'")
    for file in tree.cpp:
        if file.startswith(("src/", "include/")) and tree.stage(file) is None:
            yield Violation(f"stage {file}", 1, f"{file}:1", f"the file belongs to no stage of {STAGES}")


def _why_not(tree: Tree, file: str, path: str) -> str | None:
    """Returns why `file`, which belongs to a stage, may not include `path`, or None if it may."""
    target = tree.included(file, path)
    if target is None:
        return "there is no such public header" if path.startswith("collage/") else None  # generated, or a library's
    if file.startswith("include/") and not target.startswith("include/"):
        return "a public header includes public headers only"
    user, used = tree.stage(file), tree.stage(target)
    if user is None or used is None:
        return None  # reported for the file itself
    mine, other = tree.backend(file), tree.backend(target)
    if other is not None and other != mine:
        if user != BACKENDS:
            return f"'{user}' may not include a toolchain's files"
        return f"'{mine}' and '{other}' are both toolchains" if tree.has_toolchain(other) else None
    return tree.stages.why_not(user, used)


def check_cycles(tree: Tree) -> Iterator[Violation]:
    """Yields a violation for each header that a search finds to include itself, with the path that leads back."""
    edges: dict[str, list[tuple[str, int]]] = {}
    for file in tree.cpp:
        if file.endswith(".h"):
            found = ((tree.included(file, include.path), include.line) for include in tree.source(file).includes())
            edges[file] = [(target, line) for target, line in found if target is not None]
    done: set[str] = set()
    for start in edges:
        if start not in done:
            yield from _cycles_from(start, edges, done)


def _cycles_from(start: str, edges: dict[str, list[tuple[str, int]]], done: set[str]) -> Iterator[Violation]:
    """Searches in depth; `path` leads from `start` to the header whose includes are being followed."""
    path, pending = [start], [iter(edges[start])]
    while path:
        step = next(pending[-1], None)
        if step is None:
            done.add(path.pop())
            pending.pop()
            continue
        target, line = step
        if target in path:
            cycle = [*path[path.index(target) :], target]
            key = f"cycle {min(cycle)}"
            yield Violation(key, len(cycle) - 1, f"{path[-1]}:{line}", f"include cycle: {' -> '.join(cycle)}")
        elif target not in done and target in edges:
            path.append(target)
            pending.append(iter(edges[target]))


def private_collage_includes(tree: Tree) -> int:
    """Returns how many `#include "collage/…"` mean a private file, `src/collage/…`."""
    return sum(
        (tree.included(file, include.path) or "").startswith("src/collage/")
        for file in tree.cpp
        for include in tree.source(file).includes()
        if include.path.startswith("collage/")
    )


def private_includes_of_users(tree: Tree) -> int:
    """Returns how many includes of the tools and the Python module mean a file in `src`."""
    return sum(
        (tree.included(file, include.path) or "").startswith("src/")
        for file in tree.cpp
        if file.startswith(("tools/", "python/"))
        for include in tree.source(file).includes()
    )
