"""Uses of the package that mypy must understand, and misuses that it must refuse (an unused `ignore` is an error)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import collage
import collage.onnxruntime_api as ort
from collage import relay, toolchain, transform
from collage.relay import collage as parts
from collage.relay import dataflow_pattern as dfp


def build() -> relay.Function:
    x: relay.Var = relay.var("x", shape=(1, None))
    body: relay.Expr = relay.nn.relu(relay.add(x, relay.const(1.0)))
    type_: relay.Type | None = body.checked_type
    assert type_ is None or isinstance(type_, relay.TensorType)
    return relay.Function([x], body)


def transformed(module: collage.IRModule) -> collage.IRModule:
    def keep(function: relay.Function, _: collage.IRModule) -> relay.Function:
        return function

    with transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 4}):
        return transform.Sequential(["FoldConstant", transform.function_pass(keep, "Keep")])(module)


def cost(function: relay.Function, target: str) -> float:
    return float(len(function.params)) + len(target)


class ByParameters:
    def estimate(self, mod: collage.IRModule, target: collage.Target) -> float:
        return float(len(mod.main.params)) + len(target.compiler)


def estimated(path: str) -> list[collage.Executable]:
    collage.register_estimator("by parameters", ByParameters)
    by_function: collage.Executable = collage.compile(path, estimator=lambda mod, target: len(mod.main.params) * 1e-6)
    return [by_function, collage.compile(path, estimator=ByParameters()), collage.compile(path, estimator="database")]


class Mine(toolchain.Toolchain):
    name = "mine"

    def pattern_table(self) -> list[toolchain.Pattern]:
        return [toolchain.Pattern("mine.relu", "nn.relu(*)", lambda function: None if function.params else "no input")]

    def load(self, blob: bytes, constants: Sequence[toolchain.Array], threads: int) -> toolchain.Run:
        return lambda inputs, outputs: np.maximum(inputs[0], 0, out=outputs[0])


def first_that_fit(task: collage.SearchTask) -> list[list[int]]:
    cover: list[int] = []
    open_positions = set(range(task.num_positions))
    for candidate in range(task.num_candidates):
        if open_positions.issuperset(task.positions(candidate)) and task.cost(candidate) < 1.0:
            cover.append(candidate)
            open_positions -= set(task.positions(candidate))
    return [cover]


def exported(path: str) -> bytes | None:
    collage.register_toolchain(Mine())
    taken: int = collage.support(path, ["mine"])["toolchains"][0]["taken"]
    assert taken >= 0
    collage.compile(path, search=first_that_fit)
    return collage.frontend.to_onnx(collage.frontend.from_onnx(path))


def partitioned(function: relay.Function) -> list[str]:
    pattern: dfp.DFPattern = dfp.is_op("nn.relu")(dfp.wildcard()).optional(lambda p: dfp.is_op("tanh")(p))
    rule = parts.Primitive(parts.PatternRule(pattern))
    cover = parts.partition(function, [parts.RuleTarget("mine", rule)], cost=cost)
    return [op for part in cover.partitions for op in part.ops]


def run(path: str) -> npt.NDArray[np.float32]:
    exe: collage.Executable = collage.compile(path, threads=1, budget="10s", progress=lambda p: print(p.phase))
    named: dict[str, npt.NDArray[np.float32]] = exe.run([np.zeros(3, "float32")])
    listed: list[npt.NDArray[np.float32]] = exe.run(None, {"x": np.zeros(3, "float32")})
    assert len(listed) == len(named)
    return named[exe.outputs[0].name]


def timed(path: str) -> float:
    with collage.load(path) as exe, open(path, "rb") as file:
        summary: collage.BenchmarkSummary = collage.load(file).benchmark(0.1)
        instance = exe.instance()
        instance.set_input("x", np.zeros(3, "float32"))
        steps: list[collage.TimedStep] = instance.run_timed()
        places: list[int | None] = [step.partition for step in steps]
        names: list[str] = [argument.name for argument in exe.get_inputs()]
        assert len(places) >= len(names)
        return summary.p99 + sum(summary) + float(steps[0])


def session(path: str) -> list[npt.NDArray[np.float32]]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    tuned: int = collage.tune(path, threads=2)["search"]["measured"]
    assert collage.TuningDatabase().stats()["by_kind"]["partition"] >= tuned
    return ort.InferenceSession(path, options, ["CPUExecutionProvider"], toolchains="native").run(["y"], {"x": [1.0]})


relay.Function([relay.const(1.0)], relay.const(1.0))  # type: ignore[list-item]
relay.TupleGetItem(relay.const(1.0), "0")  # type: ignore[arg-type]
collage.tune(build())  # type: ignore[call-overload]
collage.load(3)  # type: ignore[arg-type]
collage.compile("m.onnx", thread=1)  # type: ignore[call-arg]
collage.compile("m.onnx", threads="1")  # type: ignore[arg-type]
collage.compile("m.onnx", search=cost)  # type: ignore[arg-type]
collage.register_toolchain("mine")  # type: ignore[arg-type]
collage.compile("m.onnx", estimator=cost)  # type: ignore[arg-type]
parts.partition(build(), [parts.RuleTarget("mine", "{}")], cost=len)  # type: ignore[arg-type]
transform.Sequential([1])  # type: ignore[list-item]
dfp.is_op(3)  # type: ignore[arg-type]
collage.parse("").main.attrs = {}  # type: ignore[misc]
