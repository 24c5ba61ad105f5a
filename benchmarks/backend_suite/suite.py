#!/usr/bin/env python3
"""suite.py: ONNX's own backend tests, all parts of them, by Collage and by ONNX Runtime.

    benchmarks/backend_suite/suite.py [--jobs 2] [--keep FILE] [--out docs/onnx.md] [NAME…]

Each case is compiled and run by `collage.compile` with native kernels, once with the shapes of its inputs and once with all of
them symbolic (a symbol for each size), and by ONNX Runtime on the same files. A case passes if types, shapes and elements of its
results are those that the suite stores, within its tolerances, but at least 1e-6 in absolute terms and some units in the last
place of 16-bit floats; random numbers are compared by type and shape. NAME is a pattern of cases, as in a shell; all without
one, and only then the page is written. With --keep, outcomes are appended to FILE, and those that it has are taken from it. Parts
that need a download are left out; of real networks, the package has those whose weights a graph makes.

Collage is told how many elements sequences have and of which shapes, also where sizes of tensors are symbolic.

Types that NumPy lacks reach ONNX Runtime as initializers and leave it through a Cast to float32, since its Python interface does
not take them; Collage takes and gives them as bytes.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import queue
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from suite_cases import NARROW, Case, all_cases

ROOT = Path(__file__).resolve().parents[2]
REFUSED = ROOT / "tests/conformance/onnx/refused.txt"
SECONDS = 300  # for one case
ENGINES = ("Collage, shapes given", "Collage, symbolic", "ONNX Runtime", "ONNX Runtime, symbolic")
PASS, REFUSE, FAIL = "pass", "refused", "fails"
FEW_BITS = ("int2", "int4", "uint2", "uint4")
LEAST_ABSOLUTE = 1e-6
NEWEST_FORMAT = 13  # of ONNX files that ONNX Runtime 1.31 reads
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


@dataclass
class Row:
    """How many cases of a category had each outcome, by engine."""

    cases: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {engine: Counter() for engine in ENGINES})


# ---- comparison ----


def stored(array: Any) -> Any:
    """A tensor, or a list of them, as Collage has it: narrow types as bytes."""
    if isinstance(array, list):
        return [stored(element) for element in array]
    if not isinstance(array, np.ndarray | np.generic):
        return array
    array = np.asarray(array)
    if array.dtype.name in FEW_BITS:
        return array.astype(np.int8 if array.dtype.name.startswith("int") else np.uint8)
    if array.dtype.name.startswith("float") and array.dtype.itemsize == 1:
        return array.view(np.uint8)
    return array


def difference(got: Any, wanted: Any, case: Case) -> str:
    """Returns how a result differs; "" if it does not."""
    if wanted is None or got is None:
        return "" if wanted is None and got is None else f"got {type(got).__name__}, wanted {type(wanted).__name__}"
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return "a sequence of another length"
        return next((d for d in (difference(a, b, case) for a, b in zip(got, wanted, strict=True)) if d), "")
    got, wanted = np.asarray(got), np.asarray(wanted)
    if wanted.dtype.kind in "OSU":
        return "" if got.shape == wanted.shape and (got.astype(str) == wanted.astype(str)).all() else "other strings"
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"got {got.dtype} {got.shape}, wanted {wanted.dtype} {wanted.shape}"
    if case.is_random:
        return ""
    unit = UNITS.get(wanted.dtype.name, 0)
    if wanted.dtype.kind in "fcV":
        a, b = got.astype(np.float64), wanted.astype(np.float64)
        tolerances = {"rtol": max(case.rtol, 4 * unit), "atol": max(case.atol, LEAST_ABSOLUTE, unit)}
        right = np.isclose(a, b, equal_nan=True, **tolerances)
    else:
        right = got == wanted
    return "" if right.all() else f"{np.count_nonzero(~right)} of {right.size} elements differ"


def compare(got: list[Any], wanted: list[Any], case: Case) -> str:
    if len(got) != len(wanted):
        return f"{len(got)} results, {len(wanted)} wanted"
    return next((d for d in (difference(a, b, case) for a, b in zip(got, wanted, strict=True)) if d), "")


# ---- engines ----


def input_names(model: onnx.ModelProto) -> list[str]:
    constants = {initializer.name for initializer in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in constants]


def opened(model: onnx.ModelProto, values: dict[str, Any]) -> onnx.ModelProto | None:
    """The model with a symbol for each size of its inputs; None if no input has dimensions."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    any_open = False
    for value in result.graph.input:
        array = values.get(value.name)
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            continue
        kind = value.type.optional_type.elem_type if value.type.HasField("optional_type") else value.type
        shape = kind.tensor_type.shape
        del shape.dim[:]
        for size in array.shape:
            shape.dim.add().dim_param = f"s{size}"
            any_open = True
    del result.graph.value_info[:]
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape") if value.type.HasField("tensor_type") else None
    return result if any_open else None


def compiled(module: Any, is_open: bool) -> Any:
    """An executable of native kernels, without a search where none is needed."""
    import collage

    settings = {"toolchains": ["native"]} if is_open else {"partition_for": "native"}
    return collage.compile(module, threads=1, **settings)


def shape_of(value: Any) -> Any:
    """The shape of an input, the list of those of a sequence's elements, or None where there is nothing."""
    if isinstance(value, list):
        return [element.shape for element in value] or None
    return None if value is None else value.shape


def grouped(results: dict[str, Any], model: onnx.ModelProto) -> list[Any]:
    """Results of Collage in the order of the model's outputs, sequences as lists, optional values that are not there as None."""
    values: list[Any] = []
    for output in model.graph.output:
        elements = [results[name] for name in element_names(output.name, results)]
        kind = output.type.optional_type.elem_type if output.type.HasField("optional_type") else output.type
        values.append(elements if kind.HasField("sequence_type") else results.get(output.name))
    return values


def element_names(name: str, known: dict[str, Any]) -> Iterable[str]:
    return itertools.takewhile(known.__contains__, (f"{name}.{i}" for i in itertools.count()))


def run_collage(case: Case, is_open: bool) -> tuple[str, str]:
    import collage

    values = [dict(zip(input_names(case.model), ins, strict=False)) for ins, _ in case.data]
    first = {name: stored(array) for name, array in values[0].items()}
    model = opened(case.model, first) if is_open else case.model
    if model is None:
        return "", "no dimensions"
    tensors = {name: array for name, array in first.items() if isinstance(array, np.ndarray)}
    reason = ""
    # With as few inputs as constants as the model needs: none, the integers (sizes, axes, counts), all but the first, or all.
    integers = {n: a for n, a in tensors.items() if a.dtype.kind in "iub"}
    others = dict(list(tensors.items())[1:])
    for constant in ({}, integers, others) if is_open else ({}, integers, others, tensors):
        named = {n: a for n, a in first.items() if n not in constant and not (is_open and n in tensors)}
        shapes = {n: shape_of(a) for n, a in named.items()}
        try:
            module = collage.frontend.from_onnx(model, shapes, constant)
            program = compiled(module, is_open)
        except (collage.UnsupportedError, collage.InputError) as error:
            reason = reason or str(error)
            continue
        for (_, wanted), inputs in zip(case.data, values, strict=True):
            feeds = {n: stored(a) for n, a in inputs.items() if n not in constant and shape_of(a) is not None}
            wrong = compare(grouped(program.run(feeds), model), [stored(w) for w in wanted], case)
            if wrong:
                return FAIL, wrong
        return PASS, "with constants" if constant else ""
    return REFUSE, reason


def is_plain(kind: onnx.TypeProto) -> bool:
    return kind.tensor_type.elem_type not in NARROW | {TensorProto.BFLOAT16}


def for_onnxruntime(case: Case, model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[bool]]:
    """The model without types that the Python interface does not take, and which results are cast."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    # It refuses versions of the file's format beyond those that its release knew, whatever is in the file.
    result.ir_version = min(result.ir_version, NEWEST_FORMAT)
    inputs = dict(zip(input_names(case.model), case.data[0][0], strict=False))
    for value in list(result.graph.input):
        if value.type.HasField("tensor_type") and not is_plain(value.type) and value.name in inputs:
            result.graph.input.remove(value)
            result.graph.initializer.append(numpy_helper.from_array(np.asarray(inputs[value.name]), value.name))
    cast = []
    for value in result.graph.output:
        needed = value.type.HasField("tensor_type") and not is_plain(value.type)
        cast.append(needed)
        if needed:
            result.graph.node.append(helper.make_node("Cast", [value.name], [f"{value.name}_cast"], to=1))
            value.name += "_cast"
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    return result, cast


def run_onnxruntime(case: Case, is_open: bool) -> tuple[str, str]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # else it refuses the newest opset as such
    first = dict(zip(input_names(case.model), case.data[0][0], strict=False))
    model = opened(case.model, first) if is_open else case.model
    if model is None:
        return "", "no dimensions"
    model, cast = for_onnxruntime(case, model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class
        return REFUSE, str(error)
    names = {value.name for value in session.get_inputs()}
    for ins, outs in case.data:
        feeds = {n: v for n, v in zip(input_names(case.model), ins, strict=False) if n in names}
        try:
            got = session.run(None, feeds)
        except Exception as error:
            return FAIL, str(error)
        wanted = [np.asarray(w).astype(np.float32) if c else w for w, c in zip(outs, cast, strict=True)]
        if wrong := compare(got, wanted, case):
            return FAIL, wrong
    return PASS, ""


def outcome_of(case: Case, engine: str) -> tuple[str, str]:
    is_open = engine.endswith("symbolic")
    return run_collage(case, is_open) if engine.startswith("Collage") else run_onnxruntime(case, is_open)


class Child:
    """A process that runs cases one after the other, and may crash: the next case gets another one."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.process: Any = None
        self.pipe: Any = None

    def run(self, index: int, engine: str) -> tuple[str, str]:
        if self.process is None:
            fork = multiprocessing.get_context("fork")
            self.pipe, there = fork.Pipe()
            self.process = fork.Process(target=self.serve, args=(there,), daemon=False)
            self.process.start()
            there.close()
        try:
            self.pipe.send((index, engine))
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            return FAIL, f"the process ended with {code}"

    def serve(self, pipe: Any) -> None:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        with contextlib.suppress(EOFError):
            while True:
                asked = pipe.recv()
                if asked is None:
                    break
                index, engine = asked
                signal.alarm(SECONDS)
                try:
                    answer = outcome_of(self.cases[index], engine)
                except Exception as error:
                    answer = (FAIL, f"{type(error).__name__}: {error}")
                signal.alarm(0)
                pipe.send(answer)
        os._exit(0)

    def close(self) -> None:
        if self.process is not None:
            self.pipe.send(None)  # other children hold the pipe's ends, too, so that closing it tells nothing
            self.process.join()


def run_all(wanted: list[tuple[int, str]], cases: list[Case], jobs: int) -> Iterable[tuple[int, str, tuple[str, str]]]:
    """Answers by case and engine, as they come."""
    children = [Child(cases) for _ in range(jobs)]
    free: queue.SimpleQueue[Child] = queue.SimpleQueue()
    for child in children:
        free.put(child)

    def run(index: int, engine: str) -> tuple[str, str]:
        child = free.get()
        try:
            return child.run(index, engine)
        finally:
            free.put(child)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(run, i, e): (i, e) for i, e in wanted}
        for answer in concurrent.futures.as_completed(waiting):
            yield *waiting[answer], answer.result()
    for child in children:
        child.close()


class Kept:
    """Outcomes by case and engine, and the file that keeps them, if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.outcomes: dict[tuple[str, str], tuple[str, str]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                name, engine, outcome, reason = json.loads(line)
                self.outcomes[name, engine] = (outcome, reason)

    def add(self, name: str, engine: str, answer: tuple[str, str]) -> None:
        self.outcomes[name, engine] = answer
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([name, engine, *answer]) + "\n")


# ---- the page ----


def refusals() -> list[tuple[str, str]]:
    """Patterns of cases that are out of scope, and reasons."""
    rows = (line.split(None, 2) for line in REFUSED.read_text().splitlines() if line and not line.startswith("#"))
    return [(row[1], row[2]) for row in rows]


def cell(counts: Counter[str], cases: int) -> str:
    ran = sum(counts[one] for one in (PASS, REFUSE, FAIL))
    if ran == 0:
        return "–"
    rest = ", ".join(f"{counts[one]} {one}" for one in (REFUSE, FAIL) if counts[one])
    of = "" if ran == cases else f" of {ran}"
    return f"{counts[PASS]}{of}" + (f" ({rest})" if rest else "")


def table(rows: dict[str, Row]) -> list[str]:
    lines = ["| category | cases | " + " | ".join(ENGINES) + " |", "| --- | --- |" + " --- |" * len(ENGINES)]
    total = Row()
    for name, row in sorted(rows.items()):
        cells = [cell(row.outcomes[engine], row.cases) for engine in ENGINES]
        lines.append(f"| {name} | {row.cases} | " + " | ".join(cells) + " |")
        total.cases += row.cases
        for engine in ENGINES:
            total.outcomes[engine] += row.outcomes[engine]
    lines.append(f"| all | {total.cases} | " + " | ".join(cell(total.outcomes[e], total.cases) for e in ENGINES) + " |")
    return lines


HEAD = """# ONNX's backend suite

Reference: ONNX's own tests of backends, version {onnx}, by Collage and by ONNX Runtime {onnxruntime}.
`benchmarks/backend_suite/suite.py` writes this page; its help says how cases are run and compared.

A cell says how many cases pass, and in brackets how many are refused with an error that names the reason, or fail: give other
results, or an error in the run; cases that were not run are in neither number. Collage compiles with native kernels. With
symbolic sizes, cases are counted that have an input with dimensions. Some inputs of {constant} cases that pass with given
shapes, and of {open_constant} with symbolic ones, are constants: those of integers, such as sizes and axes, or all but the
first, as weights are in models.

"""


def page(rows: dict[str, Row], results: dict[str, dict[str, tuple[str, str]]]) -> str:
    def constants(engine: str) -> int:
        return sum(one[engine] == (PASS, "with constants") for one in results.values())

    versions = {name: importlib.metadata.version(name) for name in ("onnx", "onnxruntime")}
    text = HEAD.format(**versions, constant=constants(ENGINES[0]), open_constant=constants(ENGINES[1]))
    text += "\n".join(table(rows)) + "\n\n## Out of scope\n\n| cases | number | reason |\n| --- | --- | --- |\n"
    given = {name: one[ENGINES[0]] for name, one in results.items() if one[ENGINES[0]][0] != PASS}
    for pattern, reason in refusals():
        fitting = [name for name in given if fnmatch.fnmatch(name, pattern) and given[name][0] == REFUSE]
        if fitting:
            text += f"| `{pattern}` | {len(fitting)} | {reason} |\n"
        for name in fitting:
            del given[name]
    if given:
        text += "\n## Others that do not pass with given shapes\n\n| case | outcome | reason |\n| --- | --- | --- |\n"
        for name, (outcome, reason) in sorted(given.items()):
            line = re.sub(r"^\S+: error: ", "", (reason.splitlines() or [""])[0]).replace("|", "\\|")
            text += f"| `{name}` | {outcome or 'not run'} | {line if len(line) < 200 else line[:200].rsplit(' ', 1)[0] + ' …'} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/onnx.md")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this one")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    engines = arguments.engine or list(ENGINES)
    cases = all_cases()
    if arguments.names:
        cases = [case for case in cases if any(fnmatch.fnmatch(case.name, name) for name in arguments.names)]
    rows: dict[str, Row] = {}
    results: dict[str, dict[str, tuple[str, str]]] = {}
    for case in cases:
        rows.setdefault(case.category, Row()).cases += 1
    kept = Kept(arguments.keep)
    wanted = [(i, e) for i, case in enumerate(cases) for e in engines if (case.name, e) not in kept.outcomes]
    for index, engine, answer in run_all(wanted, cases, arguments.jobs):
        kept.add(cases[index].name, engine, answer)
        if arguments.names or answer[0] == FAIL:
            text = "".join(answer[1].splitlines()[:1])
            print(f"{answer[0] or 'skipped'} {cases[index].name} by {engine}: {text}", flush=True)
    for case in cases:
        results[case.name] = {engine: kept.outcomes[case.name, engine] for engine in engines}
        for engine in engines:
            rows[case.category].outcomes[engine][results[case.name][engine][0]] += 1
    print("\n".join(table(rows)))
    if not arguments.names and engines == list(ENGINES):
        arguments.out.write_text(page(rows, results))
    sys.exit(0 if cases else 1)


if __name__ == "__main__":
    main()
