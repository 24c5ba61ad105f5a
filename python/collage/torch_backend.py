"""``torch.compile(model, backend="collage")``: graphs that Dynamo captures run on the fastest mix of toolchains.

For inference. Parameters and buffers become constants; one that is changed in place has the graph compiled again. Torch's
tensors are read where they lie, results are tensors over the memory that the model wrote. A graph with an operator or a
dtype that has no equivalent runs in torch, with a warning that says why. Sizes that change (``dynamic=True``, and those that
Dynamo finds to change) stay open: such a graph is compiled once for all of them. For these, ``onnxscript`` must be installed.

Options are those of `collage.compile`::

    fast = torch.compile(model.eval(), backend="collage", options={"threads": 1, "budget": "1m"})
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from collage import relay
from collage._aten import to_relay
from collage._aten_operators import dtype_name
from collage._compile import compile as compile_model
from collage.errors import UnsupportedError

__all__ = ["backend", "register"]


def _placeholders(graph_module: Any) -> list[Any]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _is_constant(torch: Any, node: Any, example: Any) -> bool:
    """Whether an input is a parameter or a buffer of the model."""
    kept = getattr(node, "meta", {}).get("tensor_dict", {})
    return isinstance(example, torch.nn.Parameter) or bool(kept.get("_dynamo_static_input_type"))


def _is_size(example: Any) -> bool:
    """Whether an input is a size that changes."""
    return type(example).__name__ in ("int", "SymInt")


class _Captured:
    """A captured graph: compiled when it is first called, and again when a parameter has changed."""

    def __init__(self, torch: Any, graph_module: Any, examples: Sequence[Any], options: Mapping[str, Any]) -> None:
        self._torch = torch
        self._options = dict(options)
        nodes = _placeholders(graph_module)
        self._constant = [_is_constant(torch, node, example) for node, example in zip(nodes, examples)]
        self._prepare(graph_module, examples)
        self._refresh(examples)

    def _prepare(self, graph_module: Any, examples: Sequence[Any]) -> None:
        """Facts that are found out once."""
        raise NotImplementedError

    def _compile(self, args: Sequence[Any]) -> None:
        """Compiles the graph with the parameters as they are."""
        raise NotImplementedError

    def _run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        raise NotImplementedError

    def _versions_of(self, args: Sequence[Any]) -> list[int]:
        return [arg._version for arg, constant in zip(args, self._constant) if constant]

    def _refresh(self, args: Sequence[Any]) -> None:
        self._compile(args)
        self._versions = self._versions_of(args)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        if self._versions_of(args) != self._versions:
            self._refresh(args)
        return self._run(args)


class _KnownSizes(_Captured):
    """A graph of the shapes that it was captured with."""

    def _prepare(self, graph_module: Any, examples: Sequence[Any]) -> None:
        torch = self._torch
        make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
        table = importlib.import_module("torch._decomp").core_aten_decompositions()
        guards = importlib.import_module("torch._guards")
        try:
            # Outside of Dynamo's own tracing, whose symbolic sizes it would take; the model runs once.
            with torch.no_grad(), guards.tracing(None):
                self._graph = make_fx(graph_module, decomposition_table=table, tracing_mode="real")(*examples)
        except Exception as error:
            raise UnsupportedError(f"it cannot be traced: {error}") from error

    def _compile(self, args: Sequence[Any]) -> None:
        values: list[relay.Expr] = []
        for i, (arg, constant) in enumerate(zip(args, self._constant)):
            if constant:
                values.append(relay.const(arg.detach().cpu().contiguous().numpy().copy()))
            else:
                values.append(relay.var(f"input_{i}", shape=tuple(arg.shape), dtype=dtype_name(arg.dtype)))
        function, self._where = to_relay(self._graph, values)
        self._executable = compile_model(function, **self._options)

    def _run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        inputs = [arg.detach().contiguous() for arg, constant in zip(args, self._constant) if not constant]
        results = self._executable._model.run(inputs)
        tensors = [self._torch.from_numpy(result) for result in results]
        return tuple(None if place is None else tensors[place] for place in self._where)


class _OpenSizes(_Captured):
    """A graph some of whose inputs are sizes, compiled for any. It goes through torch's exporter to ONNX."""

    def _prepare(self, graph_module: Any, examples: Sequence[Any]) -> None:
        self._graph = graph_module
        nodes = _placeholders(graph_module)
        is_size = [_is_size(example) for example in examples]
        self._inputs = [i for i in range(len(nodes)) if not self._constant[i] and not is_size[i]]
        shapes = {i: [str(size) for size in nodes[i].meta["example_value"].shape] for i in self._inputs}
        self._open = [{axis for axis, size in enumerate(shapes[i]) if not size.isdigit()} for i in self._inputs]
        places = {size: (i, axis) for i in self._inputs for axis, size in enumerate(shapes[i])}
        self._sizes = {i: places.get(str(nodes[i].meta["example_value"])) for i in range(len(nodes)) if is_size[i]}
        if None in self._sizes.values():
            raise UnsupportedError("numbers that are no sizes of tensors")

    def _module(self, args: Sequence[Any]) -> Any:
        """A module of the tensors that are inputs alone."""
        torch, graph, inputs, sizes = self._torch, self._graph, self._inputs, self._sizes
        kinds: list[type] = []

        class Whole(torch.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, tensors: list[Any]) -> list[Any]:
                given = dict(zip(inputs, tensors))
                at = {i: given[place[0]].shape[place[1]] for i, place in sizes.items() if place is not None}
                results = graph(*[given.get(i, at.get(i, arg)) for i, arg in enumerate(args)])
                kinds[:] = [torch.Tensor if isinstance(result, torch.Tensor) else type(result) for result in results]
                numbers = [result for result in results if result is not None]
                return [torch.scalar_tensor(x, dtype=torch.int64) if _is_size(x) else x for x in numbers]

        self._kinds = kinds
        return Whole().eval()

    def _compile(self, args: Sequence[Any]) -> None:
        torch = self._torch
        if importlib.util.find_spec("onnxscript") is None:
            raise UnsupportedError("sizes that change need the package 'onnxscript', which is not installed")
        guards = importlib.import_module("torch._guards")
        dynamic = torch.export.Dim.DYNAMIC
        shapes = [dict.fromkeys(sorted(axes), dynamic) for axes in self._open]
        tensors = [args[i] for i in self._inputs]
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "graph.onnx")
            try:
                with torch.no_grad(), guards.tracing(None):
                    program = torch.onnx.export(
                        self._module(args), (tensors,), dynamo=True, dynamic_shapes=(shapes,), verbose=False
                    )
                program.save(file, external_data=True)
            except Exception as error:
                raise UnsupportedError(f"it cannot be exported with open sizes: {error}") from error
            self._executable = compile_model(file, **self._options)

    def _run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        inputs = [args[i].detach().contiguous() for i in self._inputs]
        results = iter(self._executable.run(inputs).values())
        return tuple(self._result(kind, results) for kind in self._kinds)

    def _result(self, kind: type, results: Iterator[Any]) -> Any:
        if kind is type(None):
            return None
        result = next(results)
        return self._torch.from_numpy(result) if kind is self._torch.Tensor else int(result)


def _compiled(torch: Any, graph_module: Any, examples: Sequence[Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """The captured graph as Collage runs it.

    Raises:
        UnsupportedError: with the reason why torch must run it.
    """
    tensors = [example for example in examples if isinstance(example, torch.Tensor)]
    others = [example for example in examples if not isinstance(example, torch.Tensor)]
    if not all(_is_size(other) for other in others):
        raise UnsupportedError("inputs that are neither tensors nor sizes")
    if any(tensor.device.type != "cpu" for tensor in tensors):
        raise UnsupportedError("tensors that are not in the processor's memory")
    return (_OpenSizes if others else _KnownSizes)(torch, graph_module, examples, options)


def backend(graph_module: Any, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """Compiles a captured graph; Dynamo calls it with each one.

    Args:
        graph_module: a ``torch.fx.GraphModule``.
        example_inputs: the tensors that it was captured with, whose shapes and dtypes it is compiled for.
        kwargs: ``options``, a mapping, as ``torch.compile`` passes it on: arguments of `collage.compile`.

    Returns:
        A function that computes the graph's results.
    """
    torch = importlib.import_module("torch")
    options = dict(kwargs.get("options") or {})
    needs_gradient = torch.is_grad_enabled() and any(
        isinstance(example, torch.Tensor) and example.requires_grad for example in example_inputs
    )
    try:
        if needs_gradient:
            raise UnsupportedError("gradients are wanted: call the model within torch.no_grad()")
        return _compiled(torch, graph_module, example_inputs, options)
    except UnsupportedError as error:
        warnings.warn(f"a graph runs in torch, not in Collage: {error.message}", stacklevel=2)
        forward: Callable[..., Any] = graph_module.forward
        return forward


def register() -> None:
    """Makes the name "collage" known to ``torch.compile`` where the package is not installed; an installed one is found.

    Raises:
        ImportError: torch is not installed.
    """
    registry = importlib.import_module("torch._dynamo.backends.registry")
    if "collage" not in registry.list_backends():
        registry.register_backend(backend, name="collage")
