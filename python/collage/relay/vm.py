"""Compiling and running whole programs: control flow, closures, data, shapes known at run time only.

>>> import collage as tvm
>>> mod = tvm.parse('''
... def @main(%x: Tensor[(2), float32], %twice: bool) {
...   if (%twice) { multiply(%x, 2f) } else { %x }
... }''')
>>> exe = tvm.relay.vm.compile(mod, target="llvm")
>>> VirtualMachine(exe).run([1.0, 2.0], True).tolist()
[2.0, 4.0]

With ``relay.collage.enable_collage`` in the `PassContext`, the dataflow of programs is covered by the best mix of the
targets' toolchains, as `collage.compile` does.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any

import collage as _collage
from collage import _core
from collage._core import Constructor, Function, IRModule, Value
from collage._executable import Executable as _PlanExecutable
from collage.errors import InputError, UnsupportedError
from collage.target import Targets, as_targets
from collage.transform import PassContext, Sequential

__all__ = ["ADT", "Executable", "Value", "VirtualMachine", "compile"]

_PLAN_MAGIC = b"CLGE"


@dataclass(frozen=True)
class ADT:
    """A value of a data type: its constructor and the values of its fields.

    >>> import collage
    >>> mod = collage.parse('''
    ... type List[A] { Cons(A, List[A]), Nil }
    ... def @main(%x: int64) { Cons(%x, Nil) }''')
    >>> result = VirtualMachine(compile(mod)).run(3)
    >>> result.name, int(result.fields[0]), result.fields[1].name
    ('Cons', 3, 'Nil')
    """

    constructor: Constructor
    fields: tuple[Any, ...] = field(default=())

    @property
    def name(self) -> str:
        """The constructor's name."""
        return self.constructor.name_hint


class Executable:
    """A compiled program: bytecode, or what `collage.compile` made (``plan``)."""

    def __init__(self, made: _core.Bytecode | _PlanExecutable) -> None:
        self._made = made

    @property
    def plan(self) -> _PlanExecutable | None:
        """The executable with the best mix of toolchains; None when this is bytecode."""
        return self._made if isinstance(self._made, _PlanExecutable) else None

    @property
    def bytecode(self) -> str:
        """The bytecode as text; empty when there is none."""
        return "" if isinstance(self._made, _PlanExecutable) else self._made.disassemble()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, whole or not at all."""
        self._made.save(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Executable:
        """Reads what `save`, or `collage.compile`, wrote. Raises InputError or CorruptError."""
        try:
            with open(path, "rb") as file:
                is_plan = file.read(len(_PLAN_MAGIC)) == _PLAN_MAGIC
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", os.fspath(path)) from error
        return Executable(_PlanExecutable.load(path) if is_plan else _core.Bytecode.load(path))


class VirtualMachine:
    """Runs the functions of an executable. Calls from several threads take turns; make one machine for each.

    Args:
        executable: the result of `compile`.
        device: ignored, for compatibility; the processor is the only device.
    """

    def __init__(self, executable: Executable, device: object = None) -> None:
        self._plan = executable.plan
        made = executable._made
        self._machine = None if isinstance(made, _PlanExecutable) else _core.Machine(made)

    def invoke(self, name: str, *args: Any) -> Any:
        """Calls function ``name``.

        Args:
            name: the global function's name.
            args: arrays (numbers and lists become such), tuples of arguments, `ADT`.

        Returns:
            A NumPy array, a tuple, an `ADT`, or a `Value` for a function or a reference.
        """
        if self._machine is not None:
            function_args = [_as_argument(one) for one in args]
            return self._machine.invoke(name, function_args)
        assert self._plan is not None
        if name != "main":
            raise InputError(f"there is no function '{name}'", hint="an executable of Collage has 'main' only")
        return self._plan(*args)

    def run(self, *args: Any) -> Any:
        """Calls ``main``; see `invoke`."""
        return self.invoke("main", *args)


def _as_argument(value: Any) -> Any:
    """Numbers and lists of Python as `relay.const` would have them."""
    if isinstance(value, (bool, float, list)):
        return _collage.relay.const(value).data
    return value


def _load(path: str, report: dict[str, Any]) -> Any:
    if _core.Bytecode.is_bytecode(path):
        return Executable(_core.Bytecode.load(path))
    return Executable(_PlanExecutable(_core.Model.load(path), report))


def compile(mod: IRModule | Function, target: Targets = None, threads: int | None = None, **options: Any) -> Executable:
    """Compiles a program under the current `PassContext`.

    Level, required and disabled passes, instruments and options of passes hold for all passes that it runs. With
    ``relay.collage.enable_collage`` the program, or each straight-line part between its control flow, is covered by
    the best mix of the targets' toolchains, measured on this machine. Otherwise toolchains compile their partitions
    (`collage.partition_for`), passes fuse other operators into native kernels, and the rest becomes bytecode.

    Args:
        mod: a module, or a function.
        target: a target, its text, or a list of them.
        threads: threads that a run uses; None for all processors that this process may use.
        options: with Collage, further arguments of `collage.compile`, such as ``budget``.

    Raises:
        InputError, UnsupportedError, UnavailableError: by cause; unknown toolchains, a target of which there is
            no device.
    """
    module = IRModule.from_expr(mod) if isinstance(mod, Function) else mod
    module = module.infer_type()
    targets = as_targets(target)
    if PassContext.current().get("relay.collage.enable_collage"):
        options["_load"] = _load
        made: Any = _collage.compile(module, target=targets, threads=threads, **options)
        executable: Executable = made
        return executable
    if options:
        raise UnsupportedError(
            f"{', '.join(map(repr, options))} are for compiling with Collage",
            hint='PassContext(config={"relay.collage.enable_collage": True})',
        )
    unused = [name for name in _collage._compile._toolchains_of(targets) if name != "native"]
    if unused and not any(one.attrs.get("Compiler") for one in module.functions.values()):
        warnings.warn(
            f"without Collage, toolchains take part in partitions only: {', '.join(unused)} will not; "
            "see relay.collage.partition_for",
            stacklevel=2,
        )
    prepared = _core.prepare_for_partitioning(module, PassContext.current()._core)
    fused = Sequential(["FuseOps"])(prepared)
    return Executable(_core.compile_bytecode(fused, True, threads or _core.available_processors()))
