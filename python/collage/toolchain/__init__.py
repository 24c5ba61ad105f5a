"""Toolchains in Python, through the hooks that every toolchain has (docs/toolchain-interface.md).

A toolchain states which operators it takes (`Toolchain.pattern_table` or `Toolchain.supports_call`) and compiles partitions by
RFC 10's hooks: either `Toolchain.relay_to_runtime`, whose results `Toolchain.load` turns into callables, or
`Toolchain.relay_to_tir`, which writes loops. It is measured, checked against the reference and chosen like any other. Compiling
and measuring happen in child processes, which know the toolchains registered in this one.
"""

from __future__ import annotations

import atexit
import copy
import importlib
import importlib.metadata
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from collage import _core
from collage._core import Call, Expr, Function
from collage.errors import InputError, UnsupportedError

__all__ = [
    "Array",
    "Availability",
    "Compiled",
    "LibraryFunction",
    "Lowered",
    "Option",
    "OptionValue",
    "Pattern",
    "Request",
    "Run",
    "Toolchain",
    "declare_functions",
    "load_plugins",
    "register_toolchain",
    "why_functions_missing",
]

Array = npt.NDArray[Any]
Run = Callable[[Sequence[Array], Sequence[Array]], object]
"""Called for every run with the arrays that a kernel reads and those that it must fill; the same ones each time."""

OptionValue = bool | int | float | str


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
    of `Toolchain.load`: the executable then needs no Python. ``source`` is a readable form. A loader of C++ is given
    ``workspace_bytes`` of memory.
    """

    blob: bytes
    constants: Sequence[Array] = ()
    loader: str = ""
    source: str = ""
    workspace_bytes: int = 0


@dataclass(frozen=True)
class Option:
    """An option that a target may give a toolchain, ``llvm -compiler=NAME -name=value``; the default's type is its type."""

    name: str
    default: OptionValue
    doc: str
    """Its meaning, for `collage targets`."""


@dataclass(frozen=True)
class Request:
    """A partition to compile.

    ``function`` is closed and typed; parameters are tensors, results a tensor or a tuple of tensors, constants are inside.
    Matches of patterns are calls of functions with an attribute ``Composite``.
    """

    function: Function
    input_layouts: Sequence[str]
    """How its parameters lie in memory, flattened: "plain" or "channels_last"."""
    output_layouts: Sequence[str]
    """How its results must."""
    threads: int
    """How many a run may use."""
    schedule: str = ""
    """How to compile it: a text of `Toolchain.schedules`; empty: as the toolchain thinks best."""


@dataclass(frozen=True)
class Lowered:
    """A partition as loops: RFC 10's TIR is MLIR here.

    ``mlir`` has ``func.func @collage_kernel(!llvm.ptr)``. Its argument is an array of addresses: the partition's inputs,
    ``constants``, outputs and, if ``workspace_bytes`` is not 0, that much memory.
    """

    mlir: str
    constants: Sequence[Array] = ()
    workspace_bytes: int = 0


@dataclass(frozen=True)
class LibraryFunction:
    """A function of a C library, which loops call (docs/toolchain-interface.md, "Calls of C libraries")."""

    library: str
    """Its file, without a folder: "libvendor.so.1"."""
    symbol: str
    signature: str
    """Its type as MLIR writes it: "(!llvm.ptr, i32) -> i32"."""
    hint: str = ""
    """How to get the library."""


def declare_functions(functions: Sequence[LibraryFunction]) -> str:
    """Returns MLIR text that defines a function ``@SYMBOL`` for each, for loops behind it to call. At most once in a module.

    Example:
        >>> cosine = LibraryFunction("libm.so.6", "cosf", "(f32) -> f32")
        >>> "func.func private @cosf(%a0: f32) -> f32" in declare_functions([cosine])
        True

    Raises:
        InputError: a name or signature is none, or two functions have one symbol.
    """
    return _core.declare_functions(functions)


def why_functions_missing(functions: Sequence[LibraryFunction]) -> str | None:
    """Returns why a kernel that calls these could not be loaded here, None when it could; for `Toolchain.probe`.

    Looks in a child process, so that this one opens no library.

    Example:
        >>> why_functions_missing([LibraryFunction("libm.so.6", "no_such", "() -> ()")])
        "library 'libm.so.6' lacks the symbol 'no_such'"
    """
    return _core.why_functions_missing(functions)


class Toolchain:
    """Base class of toolchains. Set ``name``, and override the hooks and the methods that differ.

    Hooks are those that are overridden: either `relay_to_runtime` with `load`, or `relay_to_tir`, maybe with `tir_to_runtime`;
    and `update_constants`. A hook declines by raising `UnsupportedError` with the reason; any other exception counts as a
    failure of the candidate.

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
    """Names of passes that bring a module into the form that its patterns expect; one behind a ``-``, such as
    ``"-SimplifyInference"``, prepares every model and is to be left out, for patterns on ``nn.batch_norm``."""
    is_default: bool = True
    """Whether it takes part when nobody names toolchains."""
    results_vary: bool = False
    """Whether results may differ from run to run on equal inputs; without it, a toolchain whose results do is refused."""
    option_table: Sequence[Option] = ()
    """Options that targets may set; `options` has their values."""
    _options: Mapping[str, OptionValue] | None = None

    @property
    def options(self) -> Mapping[str, OptionValue]:
        """The values of all options: their defaults, unless `with_options` made this object."""
        return self._options or {option.name: option.default for option in self.option_table}

    def with_options(self, options: Mapping[str, OptionValue]) -> Toolchain:
        """Returns this toolchain under options, which are complete and of the declared types: a copy, unless overridden.

        Kernels of all configurations are loaded by the registered object.
        """
        configured = copy.copy(self)
        configured._options = dict(options)
        return configured

    def probe(self) -> Availability:
        """Looks for it on this machine. Must be cheap."""
        return Availability(True, "1")

    def pattern_table(self) -> Sequence[Pattern]:
        """Returns the patterns that its kernels compute. Called once; empty if `supports_call` decides."""
        return ()

    def supports_call(self, call: Call) -> str | None:
        """Whether it takes a typed call of an operator: None, or why not."""
        return "takes patterns, not single operators"

    def supports_symbolic_sizes(self, call: Call) -> str | None:
        """Whether it takes a typed call with dimensions that only a run knows (None in shapes): None, or why not.

        Called if it is overridden: `relay_to_runtime` then gets functions with such dimensions, too, with plain layouts, and
        must name a loader other than Python. Their kernels have one more input (collage/target/symbolic_sizes.h).
        """
        return "needs to know all shapes"

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

    def proposals(self, function: Function) -> Sequence[Sequence[Expr]]:
        """Candidates that no rule finds: for each the expressions inside, calls and the nodes between them.

        Called in the process that searches, for a typed dataflow function, if it is overridden; ``fusion`` must not be "none".
        """
        return ()

    def schedules(self, request: Request) -> Sequence[str]:
        """Ways to compile a partition that differ little from ``request.schedule``, most promising first.

        Called, if it is overridden, for the toolchain's own choice (""), and again for each that turned out to be faster. A text
        stands for one way for good.

        Raises:
            UnsupportedError: there are none, and why.
        """
        return ()

    def relay_to_runtime(
        self, function: Function, input_layouts: Sequence[str], output_layouts: Sequence[str], threads: int
    ) -> Compiled:
        """Compiles a partition (RFC 10). The arguments are fields of `Request`.

        A toolchain that overrides `schedules` is given ``schedule`` by name, too.

        Raises:
            UnsupportedError: declines, with the reason.
        """
        raise UnsupportedError(f"toolchain '{self.name}' compiles nothing")

    def relay_to_tir(self, request: Request) -> Lowered:
        """Writes a partition as loops, in place of `relay_to_runtime` (RFC 10). Collage compiles them as its own.

        Raises:
            UnsupportedError: declines, with the reason.
        """
        raise UnsupportedError(f"toolchain '{self.name}' writes no loops")

    def tir_to_runtime(self, lowered: Lowered) -> Compiled:
        """Compiles what `relay_to_tir` wrote, if it is overridden (RFC 10).

        Raises:
            UnsupportedError: declines, with the reason.
        """
        raise UnsupportedError(f"toolchain '{self.name}' compiles no loops")

    def update_constants(self, request: Request, compiled: Compiled) -> Sequence[Array]:
        """Returns the constants for a partition that differs from a compiled one by values of its constants only (RFC 10).

        Equal blocks of a model are compiled once if it is overridden.

        Args:
            request: the partition.
            compiled: of the other; its blob is taken for this one, too.

        Raises:
            UnsupportedError: the blob depends on these values: this partition must be compiled by itself.
        """
        raise UnsupportedError(f"toolchain '{self.name}' exchanges no constants")

    def load(self, blob: bytes, constants: Sequence[Array], threads: int) -> Run:
        """Returns a callable for a compiled partition. Must be overridden unless `Compiled.loader` names another loader or
        `relay_to_tir` writes loops.

        Args:
            blob: as `relay_to_runtime` returned it.
            constants: likewise; read only.
            threads: how many a run may use.
        """
        raise UnsupportedError(f"toolchain '{self.name}' runs nothing")

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Toolchain, method)


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
