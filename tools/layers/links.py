"""Rules on libraries: what CMake links agrees with the stages, and so do the symbols of object files."""

import fnmatch
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from layers.cmake import Command, commands, expanded, sources
from layers.tree import BACKENDS, Stages, Tree, Violation

# What `nm` calls definitions that other objects see: code, data, and what may be defined in several.
_GLOBAL = tuple("TDBRVWu")


def check_links(tree: Tree) -> Iterator[Violation]:
    """Yields links of a stage or a library to one that it must not need, and includes of modules beyond their links."""
    for file in tree.files:
        if file.startswith(("src/", "tests/")) and os.path.basename(file) == "CMakeLists.txt":
            yield from _check_file(tree, file)


def _check_file(tree: Tree, file: str) -> Iterator[Violation]:
    variables = {"CMAKE_CURRENT_SOURCE_DIR": [os.path.dirname(file)], "CMAKE_SOURCE_DIR": ["."]}
    modules: dict[str, list[str]] = {}
    links: dict[str, list[str]] = defaultdict(list)
    for command in commands(file, tree.text(file)):
        args = expanded(command.args, variables)
        if command.name == "file" and args[0].startswith("GLOB"):
            variables[args[1]] = _globbed(tree, os.path.dirname(file), args[2:])
        elif command.name == "set":
            variables[args[0]] = args[1:]
        elif command.name == "collage_module":
            modules[args[0]] = sources(args[1:], file, tree.files) + [one for one in args[1:] if tree.has(one)]
        elif command.name in ("target_link_libraries", "collage_unit_test"):
            links[args[0]] += args[1:]
            yield from _check_command(tree.stages, command, args)
    for module, files in modules.items():
        yield from _check_module(tree, module, files, links[module])


def _globbed(tree: Tree, folder: str, patterns: list[str]) -> list[str]:
    """Returns the files of the tree that `file(GLOB …)` in `folder` finds."""
    wanted = [os.path.normpath(one if one.startswith(folder) else os.path.join(folder, one)) for one in patterns]
    return [
        file
        for file in tree.files
        for one in wanted
        if fnmatch.fnmatch(file, one) and os.path.dirname(file) == os.path.dirname(one)
    ]


def _stage_or_library(stages: Stages, target: str) -> tuple[str | None, str | None]:
    """Returns the stage whose objects a CMake target is, and the library that holds them or that the target is."""
    name = target.removeprefix("$<BUILD_INTERFACE:").removesuffix(">").removeprefix("collage_")
    if name in stages.library_of:
        return name, stages.library_of[name]
    return None, name if name in stages.libraries else None


def _why_not_link(stages: Stages, target: str, other: str) -> str | None:
    """Returns why a library, or the objects or the test of a stage, may not link `other`, or None if it may."""
    stage, library = _stage_or_library(stages, target)
    used_stage, used = _stage_or_library(stages, other)
    if library is None or used is None:
        return None
    if stage is not None and used_stage is not None:
        return stages.why_not(stage, used_stage)
    if stages.libraries.index(used) > stages.libraries.index(library):
        return f"collage_{library} must not need collage_{used}"
    return None


def _check_command(stages: Stages, command: Command, args: list[str]) -> Iterator[Violation]:
    """Checks `target_link_libraries(TARGET …)` and `collage_unit_test(STAGE …)`, which may link what the stage may."""
    target, *others = args
    user = f"the test of '{target}'" if command.name == "collage_unit_test" else f"'{target}'"
    for other in others:
        if why := _why_not_link(stages, target, other):
            key = f"link {command.file}:{target}:{other}"
            yield Violation(key, 1, f"{command.file}:{command.line}", f"{user} links '{other}': {why}")


def _check_module(tree: Tree, module: str, files: list[str], links: list[str]) -> Iterator[Violation]:
    """Checks that stages which a module's sources include are in libraries that the module links."""
    linked = [library for _, library in (_stage_or_library(tree.stages, one) for one in links) if library is not None]
    last = max((tree.stages.libraries.index(one) for one in linked), default=-1)
    for file in files:
        for include in tree.source(file).includes():
            target = tree.included(file, include.path)
            used = tree.stage(target) if target else None
            if used is None or used == BACKENDS:
                continue
            library = tree.stages.library_of[used]
            if tree.stages.libraries.index(library) > last:
                text = f"module '{module}' includes \"{include.path}\" without linking collage_{library}"
                yield Violation(f"link {file}:{module}:{include.path}", 1, f"{file}:{include.line}", text)


def check_objects(tree: Tree, build: Path) -> Iterator[Violation]:
    """Yields sources whose object files in `build` need symbols of a stage that they may not include.

    An include shows what a source needs unless a header declares what another stage defines; symbols always do. Objects
    whose source is gone, which a build may leave behind, are not read.

    Raises:
        ValueError: `build` holds no objects of the stages, or an object cannot be read.
    """
    needed: dict[str, set[str]] = defaultdict(set)  # source -> symbols that it needs
    defined: dict[str, set[str]] = defaultdict(set)  # symbol -> stages that define it
    for stage in tree.stages.order:
        folder = build / "src" / "CMakeFiles" / f"collage_{stage}.dir"
        for source, symbol, kind in _symbols(tree, folder):
            if kind == "U":
                needed[source].add(symbol)
            elif kind in _GLOBAL:
                defined[symbol].add(stage)
    if not defined:
        raise ValueError(f"{build}: there are no object files of the stages; build first")
    for source, symbols in needed.items():
        yield from _symbols_upwards(tree, source, symbols, defined)


def _symbols(tree: Tree, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields the source, the symbol and its kind, as `nm` prints it, for all symbols of the objects in a folder."""
    objects = [path.relative_to(folder) for path in sorted(folder.rglob("*.o"))]
    objects = [path for path in objects if tree.has(f"src/{str(path).removesuffix('.o')}")]
    if not objects:
        return
    done = subprocess.run(["nm", "-A", "-P", *objects], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{folder}: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        place, symbol, kind = line.split()[:3]
        yield f"src/{place.removesuffix(':').removesuffix('.o')}", symbol, kind


def _symbols_upwards(tree: Tree, source: str, symbols: set[str], defined: dict[str, set[str]]) -> Iterator[Violation]:
    stage = tree.stage(source)
    found: dict[str, list[str]] = defaultdict(list)  # stage that defines -> symbols
    for symbol in symbols:
        owners = defined.get(symbol, set())
        if stage and owners and all(tree.stages.why_not(stage, owner) for owner in owners):
            found[min(owners, key=tree.stages.order.index)].append(symbol)
    for owner, names in found.items():
        listing = subprocess.run(["c++filt", *sorted(names)], capture_output=True, text=True, check=True).stdout
        text = f"needs of '{owner}', which is below '{stage}' or in a later library: {', '.join(listing.splitlines())}"
        yield Violation(f"symbols {source}:{owner}", len(names), source, text)
