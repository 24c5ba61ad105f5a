"""The main job: a model goes in, what runs it fastest on this machine comes out."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from collage import _arguments, _core, _pictures, _setting_docs
from collage._core import Function, IRModule
from collage._executable import Executable, _load_file
from collage._progress import Progress, telling
from collage._setting_types import CheckInputs
from collage._settings import Settings
from collage.costs import as_estimate
from collage.errors import InputError, UnavailableError
from collage.frontend import OnnxModel, _as_file, from_onnx
from collage.reports import CompileReport, OperatorTable, SupportReport, ToolchainReport
from collage.target import Targets, as_targets
from collage.toolchain import load_plugins
from collage.transform import PassContext

if TYPE_CHECKING:
    from typing import overload

    from typing_extensions import Unpack
else:

    def overload(function: object) -> object:
        """As ``typing.overload``, which would keep this module beyond the end of the interpreter. Ruff knows only that."""
        return function

F = TypeVar("F", bound=Callable[..., Any])
_M = TypeVar("_M", bound=OnnxModel)


def _check_inputs(given: CheckInputs | Sequence[CheckInputs]) -> list[dict[str, Any]]:
    """Arrays by name, read from files where these are given."""
    several = [given] if isinstance(given, (Mapping, str, os.PathLike)) else list(given)
    arrays: list[dict[str, Any]] = []
    for one in several:
        if isinstance(one, Mapping):
            arrays.append({name: np.asarray(value) for name, value in one.items()})
        else:
            with np.load(one) as file:
                arrays.append({name: file[name] for name in file.files})
    return arrays


def _toolchains_of(target: Targets) -> list[str]:
    """The toolchains that targets name. Raises when one cannot be used here."""
    known = {row["name"] for row in toolchains()}
    names = []
    for one in as_targets(target):
        own = "native" if one.device_type == 1 else one.kind
        if not one.compiler and own not in known:
            raise UnavailableError(
                f"target '{one}' is for {_core.target_kinds()[one.kind]}, which this build cannot use",
                hint="targets of kind llvm run on the processor",
            )
        names.append(one.compiler or own)
    return list(dict.fromkeys(names))


def _load_model(path: str, report: dict[str, Any]) -> Executable:
    return Executable(_load_file(path), report)


def _settings(tunes: bool = False) -> list[dict[str, Any]]:
    """Rows of the table of settings; with ``tunes`` those that `tune` takes."""
    rows: list[dict[str, Any]] = json.loads(_core.settings_table())
    return [row for row in rows if not tunes or "tune" in row["commands"]]


def _documented(function: F) -> F:
    """Gives a function that takes ``**settings`` the signature and the ``Args`` that the table of settings has."""
    rows = _settings(tunes=function.__name__ == "tune")
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.name[0] != "_" and one.kind is not one.VAR_KEYWORD]
    parameters = [*own, *(_setting_docs.parameter(row) for row in rows)]
    vars(function)["__signature__"] = signature.replace(
        parameters=sorted(parameters, key=lambda one: one.kind is one.KEYWORD_ONLY)
    )
    lines = _setting_docs.arguments(rows, indent=" " * 8)
    function.__doc__ = (function.__doc__ or "").replace("        settings: docs/settings.md lists them.", lines)
    return function


def _plain(name: str, value: Any) -> Any:
    """The value as `_core` takes it."""
    if value is None:
        return None
    if name == "target":
        return [str(one) for one in as_targets(value)]
    if name == "check_inputs":
        return _check_inputs(value)
    if name == "config" and isinstance(value, Mapping):
        return {key: str(one) if isinstance(one, (bool, int)) else one for key, one in value.items()}
    if isinstance(value, Mapping):
        return dict(value)
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return list(value) if is_list and not hasattr(value, "__fspath__") else value


@_documented
def compile(
    model: OnnxModel | IRModule | Function,
    output: str | os.PathLike[str] | None = None,
    *,
    progress: bool | Callable[[Progress], object] = False,
    should_stop: Callable[[], bool] | None = None,
    _load: Callable[[str, dict[str, Any]], Any] = _load_model,
    **settings: Unpack[Settings],
) -> Executable:
    """Finds the fastest mix of toolchains for a model, and returns what runs it.

    The passes that precede the search run under the current `collage.transform.PassContext`.

    Args:
        model: an ONNX model (path, bytes or ``onnx.ModelProto``), or a module.
        output: where to write the executable (.clg); None keeps it in memory only.
        progress: True shows a bar where tqdm is installed and standard error is a terminal or a notebook, else lines; a
            callable gets `Progress`. An exception in it ends the compilation.
        should_stop: asked before each measurement; True ends measuring as if the budget were spent.
        settings: docs/settings.md lists them.

    Returns:
        The executable; its ``report``, a `collage.reports.CompileReport`, holds all that was found out.

    Raises:
        InputError, UnsupportedError, UnavailableError: by cause; nothing is left half-written.
        TypeError: for an argument that is no setting.
    """
    plain, hooks = _request(settings)
    with telling(progress) as teller, tempfile.TemporaryDirectory(prefix="collage-") as folder:
        path = os.path.join(folder, "model.clg") if output is None else os.fspath(output)
        hooks["output"] = path
        if isinstance(model, Function):
            model = IRModule.from_expr(model)
        if isinstance(model, IRModule):
            report = _core.compile_module(model, "module", plain, hooks, teller, should_stop)
        else:
            with _as_file(model) as file:
                report = _core.compile_file(file, plain, hooks, teller, should_stop)
        made: Executable = _load(path, report)  # stays mapped when the file goes
        return made


@overload
def tune(
    model: OnnxModel,
    *,
    progress: bool | Callable[[Progress], object] = False,
    should_stop: Callable[[], bool] | None = None,
    **settings: Unpack[Settings],
) -> CompileReport: ...
@overload
def tune(  # noqa: F811
    model: list[_M] | tuple[_M, ...],
    *,
    progress: bool | Callable[[Progress], object] = False,
    should_stop: Callable[[], bool] | None = None,
    **settings: Unpack[Settings],
) -> list[CompileReport]: ...
@_documented
def tune(  # noqa: F811
    model: OnnxModel | list[_M] | tuple[_M, ...],
    *,
    progress: bool | Callable[[Progress], object] = False,
    should_stop: Callable[[], bool] | None = None,
    **settings: Unpack[Settings],
) -> CompileReport | list[CompileReport]:
    """Measures ahead the costs that compiling models will need, and keeps them in the tuning database.

    It resumes where it was stopped: known costs are not measured again. ``collage tune`` does it, too. Several models
    share the budgets of time and trials: what one does not need goes to those after it.

    Args:
        model: an ONNX model (path, bytes or ``onnx.ModelProto``), or several in a list.
        progress: True shows a bar where tqdm is installed, else lines; a callable gets `Progress`.
        should_stop: asked before each measurement; True ends measuring as if the budget were spent.
        settings: docs/settings.md lists them.

    Returns:
        The report, whose ``search`` counts what was measured; there is no winner, as no model was timed. For several
        models a list of reports, without those that ``should_stop`` left out.

    Raises:
        InputError, UnsupportedError, UnavailableError: by cause; with several models the first failure, after
            the others were tuned.
        TypeError: for an argument that is no setting, or one of `collage.compile` only.
    """
    known, taken = ({row["name"] for row in _settings(tunes)} for tunes in (False, True))
    for name in settings:
        if name in known - taken:
            raise TypeError(f"setting '{name}' is of collage.compile only: tuning makes no executable")
    plain, hooks = _request(settings)
    models = list(model) if isinstance(model, (list, tuple)) else [model]
    with telling(progress) as teller, ExitStack() as files:
        paths = [files.enter_context(_as_file(one)) for one in models]
        tuned = _core.tune_files(paths, plain, {**hooks, "output": ""}, teller, should_stop)
    reports = [cast(CompileReport, _pictures.ShownCompileReport(one)) for one in tuned]
    return reports if isinstance(model, (list, tuple)) else reports[0]


def _request(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings as `_core` takes them, and the hooks, which no setting is."""
    load_plugins()
    given = dict(settings)
    context = PassContext.current()
    hooks: dict[str, Any] = {"runner_python": sys.executable, "pass_context": context._of_compilation()}
    if callable(given.get("search")):
        hooks["search_with"] = given.pop("search")
    if given.get("estimator") is not None and (estimate := as_estimate(given["estimator"])) is not None:
        hooks["estimate"] = estimate
        del given["estimator"]
    return {name: _plain(name, value) for name, value in given.items()}, hooks


def toolchains() -> list[ToolchainReport]:
    """The toolchains of this build: name, available, version, license, and reason and hint when it is not
    available.

    >>> [row["name"] for row in toolchains() if row["name"] == "native"]
    ['native']
    """
    load_plugins()
    return cast(list[ToolchainReport], _core.toolchains())


def support(
    model: OnnxModel | IRModule | Function,
    toolchains: str | Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> SupportReport:
    """Reports which calls of a model each toolchain takes, and why not the others. Nothing is compiled or measured.

    Calls are counted after the passes that begin every compilation.

    Args:
        model: an ONNX model, a module, or a function.
        toolchains: names, in a list or separated by commas; None for all, also those that are not available here.
        shapes: shapes of dynamic inputs of an ONNX model, by name.

    Returns:
        ``calls``, their number; ``outside``, the number of others, outside of static straight-line parts; and a row
        for each of ``toolchains``: as `collage.toolchains` gives, ``taken``, and ``operators``, each with ``name``,
        ``calls``, how many it takes ``alone`` and only ``in_patterns``, and ``refused``: reasons with numbers of calls.

    >>> from collage import relay
    >>> x = relay.var("x", shape=(1, 8))
    >>> report = support(relay.Function([x], relay.nn.relu(x)), toolchains=["native"])
    >>> report["calls"], report["toolchains"][0]["taken"]
    (1, 1)
    """
    load_plugins()
    if isinstance(model, Function):
        model = IRModule.from_expr(model)
    if not isinstance(model, IRModule):
        model = from_onnx(model, shapes=shapes)
    elif shapes is not None:
        raise InputError("the shapes of a module are known", "shapes", "leave out shapes")
    report = _core.support(model, _arguments.names(toolchains, "toolchains"))
    return cast(SupportReport, _pictures.ShownSupportReport(report))


def operator_table(
    toolchains: str | Sequence[str] | None = None,
    operators: str | Sequence[str] | None = None,
    dtypes: str | Sequence[str] | None = None,
    calls: int = 1,
    seed: int = 1,
    threads: int = 1,
) -> list[OperatorTable]:
    """Which operators each toolchain takes alone, on which types and in which layouts at its boundary.

    Random calls of every operator are offered to the toolchain; what it takes is compiled, run and compared with the
    reference evaluation.

    Args:
        toolchains: names, in a list or separated by commas; None for all.
        operators: names; None for all, which takes minutes.
        dtypes: types of the data; None for all.
        calls: tried for a row, at most, each of other shapes.
        seed: of shapes and values.
        threads: that kernels run on.

    Returns:
        A row for each toolchain: as `collage.toolchains` gives, ``declined``, calls that its predicates took and its
        compiler then declined, and ``rows``, each with ``operator``, ``dtype``, ``layouts``, ``calls`` that were checked,
        ``max_error`` relative to the largest result, and ``failures``, empty where all agree.

    Raises:
        InputError: for a toolchain or operator that there is not.

    >>> table = operator_table(["native"], ["nn.relu"], ["float32"])[0]
    >>> {(row["operator"], row["dtype"], len(row["failures"])) for row in table["rows"]}
    {('nn.relu', 'float32', 0)}
    """
    load_plugins()
    tables = _core.operator_table(
        _arguments.names(toolchains, "toolchains"),
        _arguments.names(operators, "operators"),
        _arguments.names(dtypes, "dtypes"),
        calls,
        seed,
        threads,
    )
    return cast(list[OperatorTable], tables)
