"""Passes: transformations of modules, under which conditions they run, who watches them.

>>> import collage
>>> from collage import relay, transform
>>> x = relay.var("x", shape=(2, 2))
>>> mod = collage.IRModule.from_expr(relay.nn.relu(relay.add(x, relay.const([[1.0, 2.0], [3.0, 4.0]]))))
>>> with transform.PassContext(opt_level=3):
...     fused = transform.Sequential(["SimplifyInference", transform.FuseOps()])(mod)
>>> "Primitive=1" in str(fused)
True

Every pass of ``collage opt --list`` is a function of its name that gives the pass: ``transform.FoldConstant()(mod)``.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol

from collage import _arguments, _core
from collage._core import ConfigKey, IRModule, Pass
from collage._core import Function as _Function

__all__ = [
    "ConfigKey",
    "Instrument",
    "Pass",
    "PassContext",
    "PrintIR",
    "Sequential",
    "Timing",
    "config_keys",
    "function_pass",
    "get_pass",
    "module_pass",
    "passes",
]


class Instrument(Protocol):
    """Watches passes run. Any of the methods may be missing in a class that is used as one."""

    def should_run(self, pass_: Pass, module: IRModule) -> bool:
        """False bars the pass; the other hooks are then not called for it."""

    def before(self, pass_: Pass, module: IRModule) -> None:
        """Called in front of the pass."""

    def after(self, pass_: Pass, module: IRModule) -> None:
        """Called after the pass, with its result."""


_current: contextvars.ContextVar[tuple[PassContext, ...]] = contextvars.ContextVar("collage_pass_context", default=())


class PassContext:
    """Options and limits of passes; a context manager.

    It holds for `Sequential`, for passes that are called, for `collage.compile` and for `relay.vm.compile`.

    >>> with PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 10}) as context:
    ...     PassContext.current() is context
    True

    Args:
        opt_level: passes of a higher level are left out, unless they are in ``required_pass``. None stands for 2 in
            `Sequential` and for 3 in compilations that search (`collage.compile`).
        required_pass: names of passes, in a list or separated by commas, that run at every level.
        disabled_pass: names of passes that do not run, likewise.
        instruments: objects with the methods of `Instrument`.
        config: options of passes, by the names in `config_keys()`.

    Raises:
        InputError: an option or a pass that does not exist (with near misses), a value of another type.
    """

    def __init__(
        self,
        opt_level: int | None = None,
        required_pass: str | Sequence[str] | None = None,
        disabled_pass: str | Sequence[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.opt_level = 2 if opt_level is None else opt_level
        self._has_level = opt_level is not None
        self.config: dict[str, object] = _arguments.mapping(config, "config", '{"relay.FuseOps.max_depth": 10}')
        required = _arguments.names(required_pass, "required_pass")
        disabled = _arguments.names(disabled_pass, "disabled_pass")
        self._core = _core.PassContextCore(self.opt_level, required, disabled, list(instruments or ()), self.config)

    @staticmethod
    def current() -> PassContext:
        """The innermost context that this thread is within; one with the defaults when there is none."""
        stack = _current.get()
        return stack[-1] if stack else PassContext()

    def get(self, key: str) -> object:
        """Returns the value of option ``key``, or its default."""
        known = [one.name for one in _core.all_config_keys()]
        if key not in known:
            raise KeyError(key)
        return self._core.config(key)

    def _of_compilation(self) -> _core.PassContextCore:
        """The compiler's side of it in a compilation that searches."""
        return self._core if self._has_level else self._core.at_level_of_compilations()

    def __enter__(self) -> PassContext:
        _current.set((*_current.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.set(_current.get()[:-1])


def _current_core() -> _core.PassContextCore:
    return PassContext.current()._core


class Sequential:
    """Passes one behind the other, each if the current context enables it, with what they require.

    >>> Sequential(["FoldConstant", "FuseOps"])
    Sequential(['FoldConstant', 'FuseOps'])

    Args:
        passes: passes, their names, or other `Sequential` ones.
    """

    def __init__(self, passes: str | Sequence[str | Pass | Sequential]) -> None:
        self.passes: list[Pass] = []
        for one in _arguments.names(passes, "passes") if isinstance(passes, str) else passes:
            if isinstance(one, Sequential):
                self.passes.extend(one.passes)
            else:
                self.passes.append(get_pass(one) if isinstance(one, str) else one)

    def __call__(self, module: IRModule) -> IRModule:
        """Runs them on a module, which stays as it is; returns what they made."""
        return _core.run_sequential(self.passes, module, _current_core())

    def __repr__(self) -> str:
        return f"Sequential({[one.name for one in self.passes]})"


def module_pass(
    function: Callable[[IRModule], IRModule],
    name: str,
    opt_level: int = 0,
    required: str | Sequence[str] = (),
    summary: str = "",
) -> Pass:
    """Makes a pass over modules from a function.

    >>> def keep_main(mod):
    ...     return collage.IRModule({"main": mod.main})
    >>> import collage
    >>> mod = collage.parse("def @main(%x: int64) { %x } def @unused(%x: int64) { %x }")
    >>> list(module_pass(keep_main, "KeepMain")(mod).functions)
    ['main']

    Args:
        function: gives the transformed module; types are inferred behind it.
        name: its name in reports.
        opt_level: `Sequential` leaves it out at lower levels.
        required: passes that `Sequential` runs first.
        summary: a description of the pass.
    """
    return Pass(name, opt_level, _arguments.names(required, "required"), summary, function, False)


def function_pass(
    function: Callable[[_Function, IRModule], _Function],
    name: str,
    opt_level: int = 0,
    required: str | Sequence[str] = (),
    summary: str = "",
) -> Pass:
    """Makes a pass over global functions, except those of toolchains, from a function.

    Args:
        function: gets a function and its module, gives the transformed function.
        name: its name in reports.
        opt_level: `Sequential` leaves it out at lower levels.
        required: passes that `Sequential` runs first.
        summary: a description of the pass.
    """
    return Pass(name, opt_level, _arguments.names(required, "required"), summary, function, True)


def passes() -> list[Pass]:
    """All passes, in the order of the table.

    >>> "FuseOps" in [one.name for one in passes()]
    True
    """
    return _core.all_passes()


def get_pass(name: str) -> Pass:
    """The pass called ``name``. Raises InputError, with near misses, when there is none."""
    return _core.get_pass(name)


def config_keys() -> list[ConfigKey]:
    """All options that `PassContext` takes, with defaults and what they do."""
    return _core.all_config_keys()


class Timing:
    """An instrument that adds up the time of each pass.

    >>> import collage
    >>> timing = Timing()
    >>> with PassContext(instruments=[timing]):
    ...     _ = Sequential(["FoldConstant"])(collage.parse("def @main(%x: int64) { %x }"))
    >>> timing.seconds["FoldConstant"] > 0
    True
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """By name of the pass, in the order of their first run."""
        self._started: list[float] = []

    def before(self, pass_: Pass, module: IRModule) -> None:
        """Starts the clock."""
        import time

        self.seconds.setdefault(pass_.name, 0.0)
        self._started.append(time.perf_counter())

    def after(self, pass_: Pass, module: IRModule) -> None:
        """Stops the clock."""
        import time

        self.seconds[pass_.name] += time.perf_counter() - self._started.pop()


class PrintIR:
    """An instrument that prints the module behind passes.

    Args:
        names: which passes; all if none are given.
        show_meta_data: whether to print the values of constants.
    """

    def __init__(self, names: str | Sequence[str] = (), show_meta_data: bool = False) -> None:
        self._names = set(_arguments.names(names, "names"))
        for name in self._names:
            get_pass(name)
        self._show_meta_data = show_meta_data

    def after(self, pass_: Pass, module: IRModule) -> None:
        """Prints the module."""
        if not self._names or pass_.name in self._names:
            print(f"// behind {pass_.name}\n{module.astext(show_meta_data=self._show_meta_data)}")


def __getattr__(name: str) -> Callable[[], Pass]:
    """`transform.FuseOps` and so on: a function that gives the pass."""
    for one in _core.all_passes():
        if one.name == name:
            found = one
            break
    else:
        raise AttributeError(f"module 'collage.transform' has no attribute '{name}', and there is no such pass")

    def make() -> Pass:
        return found

    make.__name__ = name
    make.__doc__ = found.summary
    return make


def __dir__() -> list[str]:
    return [*__all__, *(one.name for one in _core.all_passes())]
