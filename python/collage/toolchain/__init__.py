"""Toolchains in Python, through the hooks that every toolchain has (docs/toolchain-interface.md).

A toolchain states which operators it takes (`Toolchain.pattern_table` or `Toolchain.supports_call`), compiles partitions
(`Toolchain.relay_to_runtime`, a hook of RFC 10) and turns the result into callables (`Toolchain.load`). It is measured,
checked against the reference and chosen like any other. Compiling and measuring happen in child processes, which know the
toolchains registered in this one.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.metadata
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from collage import _core
from collage._core import Call, Function
from collage.errors import InputError, UnsupportedError

__all__ = ["Array", "Availability", "Compiled", "Pattern", "Run", "Toolchain", "load_plugins", "register_toolchain"]

Array = npt.NDArray[Any]
Run = Callable[[Sequence[Array], Sequence[Array]], object]
"""Called for every run with the arrays that a kernel reads and those that it must fill; the same ones each time."""


@dataclass(frozen=True)
class Availability:
    """Whether a toolchain can be used here: a version, which is part of every tuning key, or why not."""

    available: bool
    version: str = ""
    reason: str = ""
    """When it is not available."""
    hint: str = ""
    """How to get it."""


@dataclass(frozen=True)
class Pattern:
    """A row of a pattern table: sub-graphs that a kernel computes (docs/inspection.md has the pattern language).

    ``predicate`` takes the match as a typed function and returns why it is not supported, or None if it is.
    """

    name: str
    pattern: str
    predicate: Callable[[Function], str | None] | None = None
    is_greedy: bool = True
    """Whether partitioning without costs takes its matches; searches always may."""


@dataclass(frozen=True)
class Compiled:
    """A compiled partition.

    ``constants`` are stored beside the blob, equal ones once. ``loader`` names a kernel loader of C++ that runs it in place
    of `Toolchain.load`: the executable then needs no Python. ``source`` is a readable form.
    """

    blob: bytes
    constants: Sequence[Array] = ()
    loader: str = ""
    source: str = ""


class Toolchain:
    """Base class of toolchains. Set ``name``, and override `relay_to_runtime`, `load` and the methods that differ.

    Methods may be called from several threads and in child processes: create a library's state there, on first use.
    """

    name: str = ""
    """As in ``-compiler=NAME`` and reports."""
    description: str = ""
    revision: str = ""
    """Version of this code: measurements of other revisions are not used."""
    license: str = ""
    """Licence of the libraries that its kernels need at run time, as an SPDX expression."""
    incompatible: Mapping[str, str] = {}
    """Toolchains that cannot share a process with it, and why."""
    priority: int = 100
    """Decides between candidates of equal cost; the lower number wins."""
    fusion: Literal["none", "tvm", "arbitrary"] = "none"
    """How candidates are found: each match alone, joined by operator kind as FuseOps would, any connected ones."""
    max_depth: int = 4
    """Longest path of a candidate, in nodes; 0 for no limit."""
    wants_maximal: bool = False
    """Whether the largest supported sub-graphs are candidates, too."""
    preamble: Sequence[str] = ()
    """Names of passes that bring a module into the form that its patterns expect."""

    def probe(self) -> Availability:
        """Looks for it on this machine. Must be cheap."""
        return Availability(True, "1")

    def pattern_table(self) -> Sequence[Pattern]:
        """Returns the patterns that its kernels compute. Called once; empty if `supports_call` decides."""
        return ()

    def supports_call(self, call: Call) -> str | None:
        """Whether it takes a typed call of an operator: None, or why not."""
        return "takes patterns, not single operators"

    def layouts(
        self, function: Function, eligible_inputs: Sequence[bool], eligible_outputs: Sequence[bool]
    ) -> Sequence[tuple[Sequence[str], Sequence[str]]]:
        """Layouts at the boundary that it can compile for, best first: "plain" or "channels_last" for every input and output.

        Args:
            function: the partition.
            eligible_inputs: which inputs may be channels-last (axis 1 innermost) at all.
            eligible_outputs: which outputs may.
        """
        return [(["plain"] * len(eligible_inputs), ["plain"] * len(eligible_outputs))]

    def relay_to_runtime(
        self, function: Function, input_layouts: Sequence[str], output_layouts: Sequence[str], threads: int
    ) -> Compiled:
        """Compiles a partition. Must be overridden.

        Args:
            function: closed and typed; parameters are tensors, results a tensor or a tuple of tensors, constants are
                inside. Matches of patterns are calls of functions with an attribute ``Composite``.
            input_layouts: how its parameters lie in memory, flattened.
            output_layouts: how its results must.
            threads: how many a run may use.

        Raises:
            UnsupportedError: declines, with the reason. Any other exception counts as a failure of the candidate.
        """
        raise UnsupportedError(f"toolchain '{self.name}' compiles nothing")

    def load(self, blob: bytes, constants: Sequence[Array], threads: int) -> Run:
        """Returns a callable for a compiled partition. Must be overridden unless `Compiled.loader` names another loader.

        Args:
            blob: as `relay_to_runtime` returned it.
            constants: likewise; read only.
            threads: how many a run may use.
        """
        raise UnsupportedError(f"toolchain '{self.name}' runs nothing")


_registered: dict[str, Toolchain] = {}


def register_toolchain(toolchain: Toolchain) -> None:
    """Adds a toolchain to this process; it takes part in `collage.compile` from then on, unless others are chosen by name.

    An executable that holds kernels which Python runs can be loaded where their toolchain is registered, and says so
    elsewhere. Packages have theirs registered by an entry point of group ``collage.toolchains``, a function without
    arguments that registers it.

    Raises:
        InputError: its name is taken, or what it says of itself makes no sense.
    """
    if not toolchain.name:
        raise InputError(f"{type(toolchain).__name__} has no name")
    if not _registered:
        atexit.register(_core.let_go_of_toolchains)
    _core.register_toolchain(toolchain)
    _registered[toolchain.name] = toolchain


_plugins_loaded = False


def load_plugins() -> None:
    """Registers toolchains of installed packages, and imports the modules that $COLLAGE_TOOLCHAINS names, once.

    `collage.compile` and ``python -m collage worker`` (what measures for ``--runner``) begin with it.

    Raises:
        ImportError: a module that was named cannot be imported.
    """
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    for module in filter(None, os.environ.get("COLLAGE_TOOLCHAINS", "").split(",")):
        importlib.import_module(module.strip())
    for point in importlib.metadata.entry_points(group="collage.toolchains"):
        try:
            point.load()()
        except Exception as error:  # somebody else's package must not keep anybody from compiling
            warnings.warn(f"toolchain '{point.name}' cannot be registered: {error}", stacklevel=2)
