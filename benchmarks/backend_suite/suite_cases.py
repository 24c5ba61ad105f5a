"""suite_cases.py: the cases of ONNX's backend suite, of all parts that the onnx package holds."""

import glob
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, numpy_helper

RANDOM = ("test_bernoulli", "test_training_dropout")


@dataclass
class Case:
    """One case of the suite; arrays where its values are tensors, whatever ONNX's package makes of others."""

    name: str
    part: str
    model: onnx.ModelProto
    data: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    @property
    def category(self) -> str:
        if self.part != "node":
            return f"{self.part}: strings" if self.part == "simple" and self.has_strings else self.part
        operators = {(node.domain, node.op_type) for node in self.model.graph.node}
        domains = {domain for domain, _ in operators}
        kinds = {value.WhichOneof("value") for value in self.types}
        elements = {value.tensor_type.elem_type for value in self.types}
        if "ai.onnx.ml" in domains:
            return "node: ai.onnx.ml"
        if any(domain.startswith("ai.onnx.preview") for domain in domains):
            return "node: ai.onnx.preview"
        if "ImageDecoder" in {name for _, name in operators}:
            return "node: images"
        if kinds & {"sequence_type", "optional_type"}:
            return "node: sequences and optional values"
        if self.has_strings:
            return "node: strings"
        if elements & NARROW:
            return "node: narrow types"
        if self.is_random:
            return "node: random numbers"
        return "node: written as functions" if self.name.endswith("_expanded") else "node: numbers"

    @property
    def types(self) -> list[onnx.TypeProto]:
        """The types of inputs and results."""
        return [value.type for value in (*self.model.graph.input, *self.model.graph.output)]

    @property
    def has_strings(self) -> bool:
        return any(value.tensor_type.elem_type == TensorProto.STRING for value in self.types)

    @property
    def is_random(self) -> bool:
        return self.name.startswith(RANDOM) and "zero_ratio" not in self.name


NARROW = {
    value
    for name, value in TensorProto.DataType.items()
    if name.endswith(("INT2", "INT4")) or "FLOAT8" in name or name == "FLOAT4E2M1"
}


def as_value(value: Any) -> Any:
    value = numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
    return np.asarray(value) if isinstance(value, np.generic) else value


def node_cases() -> Iterable[Case]:
    from onnx.backend.test.case.node import collect_testcases  # slow: makes every case

    for case in collect_testcases(None):
        data = [([as_value(v) for v in ins], [as_value(v) for v in outs]) for ins, outs in case.data_sets]
        yield Case(case.name, "node", case.model, data, case.rtol, case.atol)


def read_value(path: str, kind: onnx.TypeProto) -> Any:
    raw = Path(path).read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
    return numpy_helper.to_array(TensorProto.FromString(raw))


def stored_cases(part: str) -> Iterable[Case]:
    from onnx.backend.test.loader import load_model_tests

    for case in sorted(load_model_tests(kind=part), key=lambda one: one.name):
        if case.model_dir is None:
            yield from light_case(case)
            continue
        model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
        inputs = [v for v in model.graph.input if v.name not in {i.name for i in model.graph.initializer}]
        data = []
        for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set*"))):
            sides = []
            for prefix, values in (("input", inputs), ("output", model.graph.output)):
                files = sorted(glob.glob(f"{folder}/{prefix}_*.pb"), key=lambda f: int(f.rsplit("_", 1)[1][:-3]))
                sides.append([read_value(f, v.type) for f, v in zip(files, values, strict=False)])
            data.append((sides[0], sides[1]))
        yield Case(case.name, part, model, data, case.rtol, case.atol)


def light_case(case: Any) -> Iterable[Case]:
    """A real network whose weights a graph makes: the suite runs it on numbers that count up."""
    path = Path(onnx.backend.test.__file__).parents[3] / case.url
    if not path.exists():
        return
    model = onnx.load(path)
    names = {initializer.name for initializer in model.graph.initializer}
    from onnx.backend.test.runner import Runner

    inputs = [Runner.generate_dummy_data(v, name=case.name) for v in model.graph.input if v.name not in names]
    files = [path.with_name(f"{path.stem}_output_{i}.pb") for i in range(len(model.graph.output))]
    outputs = [numpy_helper.to_array(TensorProto.FromString(f.read_bytes())) for f in files]
    yield Case(case.name, "real networks", model, [(inputs, outputs)], case.rtol, case.atol)


def all_cases() -> list[Case]:
    warnings.simplefilter("ignore")
    parts = (part for part in ("simple", "pytorch-converted", "pytorch-operator", "real"))
    return [*node_cases(), *(case for part in parts for case in stored_cases(part))]
