#!/usr/bin/env python3
"""execution_provider.py: ONNX Runtime's sessions with Collage as their execution provider.

    benchmarks/deployment/execution_provider.py [--threads 1] [--budget 10s] [--seconds 2] [--build build/dev]
                                                 [--database FILE] MODEL [MODEL…]

MODEL is as for whole_models.py: small/resnet50, or a pattern such as 'small/*'. For each, a session with the provider, the
executable that the provider made, run by Collage without ONNX Runtime, and a session of ONNX Runtime alone take turns in one
process, with inputs and outputs bound once; so does a session without nodes to compute, which shows what a run of ONNX
Runtime takes by itself. Columns:

    nodes       those that the provider took, of all
    difference  the largest of the provider's results from ONNX Runtime's own, by the largest of these
    provider    median latency of the session with the provider
    directly    … of the executable by itself; none where the model became several
    ratio       provider by directly: what ONNX Runtime's session adds
    empty       median latency of a session that copies one number
    by both     provider by the sum of directly and empty: what Collage's provider adds
    as called   run(None, inputs) of the session by run(None, inputs) of `collage.Executable`: new outputs in each run
    CPU         median latency of the session without the provider
    by CPU      provider by CPU

Nothing else should run meanwhile.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from whole_models import models_folder, print_rows

HEADER = (
    "| model | threads | nodes | difference | provider | directly | ratio | empty | by both | as called | CPU | by CPU |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
# Runs of one contestant before the next has its turn.
SECONDS_OF_A_TURN = 0.02
NAME = "CollageExecutionProvider"


def aligned(array):
    import collage

    copy = collage.empty(array.shape, str(array.dtype))
    copy[...] = array
    return copy


def bound(session, feeds, outputs):
    """A run of a session whose inputs and outputs lie where they are."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def empty_run():
    """A run of a session that copies one number."""
    import numpy as np
    import onnx
    import onnxruntime

    one = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "empty", one[:1], one[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return bound(session, {"x": np.zeros(1, "float32")}, {"y": np.zeros(1, "float32")})


def directly(executable, feeds, outputs):
    """A run of the executable whose inputs and outputs lie where they are."""
    instance = executable.instance()
    for name, array in feeds.items():
        instance.set_input(name, array)
    for name, array in outputs.items():
        instance.set_output(name, array)
    return instance.run


def medians(runs, arguments):
    """Median seconds of each of `runs`, which take turns."""
    all_processors = os.sched_getaffinity(0)
    if arguments.threads == 1:
        os.sched_setaffinity(0, {min(all_processors)})
    try:
        return medians_here(runs, float(arguments.seconds))
    finally:
        os.sched_setaffinity(0, all_processors)


def medians_here(runs, seconds):
    counts = []
    for run in runs:
        run()
        started = time.perf_counter()
        run()
        counts.append(max(1, int(SECONDS_OF_A_TURN / (time.perf_counter() - started + 1e-9))))
    taken = [[] for _ in runs]
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for run, count, times in zip(runs, counts, taken, strict=True):
            for _ in range(count):
                started = time.perf_counter()
                run()
                times.append(time.perf_counter() - started)
    return [statistics.median(times) for times in taken]


def taken_nodes(session):
    """Nodes of the provider, and of all; groups of the provider."""
    groups = session.get_provider_graph_assignment_info()
    ours = [group for group in groups if group.ep_name == NAME]
    return sum(len(group.get_nodes()) for group in ours), sum(len(group.get_nodes()) for group in groups), len(ours)


def row(name, arguments, folder):
    import numpy as np
    import onnxruntime

    import collage
    import collage.onnxruntime_provider as provider

    model = models_folder() / f"{name}.onnx"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    settings = {"database": arguments.database} if arguments.database else {}
    provider.add_to(options, cache_folder=folder / "kept", budget=arguments.budget, **settings)
    session = onnxruntime.InferenceSession(model, options)
    plain = onnxruntime.SessionOptions()
    plain.intra_op_num_threads = arguments.threads
    alone = onnxruntime.InferenceSession(model, plain, providers=["CPUExecutionProvider"])
    stored = np.load(model.with_suffix(".npz"))
    feeds = {port.name: aligned(stored[f"in.{port.name}"]) for port in alone.get_inputs()}
    names = [port.name for port in alone.get_outputs()]
    wanted = dict(zip(names, alone.run(names, feeds), strict=True))
    found = session.run(names, feeds)
    difference = max(
        float(np.max(np.abs(ours.astype("float64") - theirs)) / max(1e-30, float(np.max(np.abs(theirs)))))
        for ours, theirs in zip(found, wanted.values(), strict=True)
    )
    outputs = {key: aligned(value) for key, value in wanted.items()}
    nodes, all_nodes, groups = taken_nodes(session)
    runs = [bound(session, feeds, outputs), bound(alone, feeds, outputs)]
    if groups == 1 and nodes == all_nodes:
        file = next((folder / "kept").iterdir())
        executable = collage.load(file)
        runs += [directly(executable, feeds, outputs), empty_run()]
        runs += [lambda: session.run(None, feeds), lambda: executable.run(None, feeds)]
    times = medians(runs, arguments)
    return (
        f"| {name} | {arguments.threads} | {nodes} of {all_nodes} | {difference:.1e} | {times[0] * 1e3:.3f} ms "
        f"| {beside(times)} | {times[1] * 1e3:.3f} ms | {times[0] / times[1]:.3f} |"
    )


def beside(times):
    """Columns from `directly` to `as called`, of the medians of a model's runs."""
    ours, _, *others = times
    if not others:
        return "none | none | none | none | none"
    own, empty, called, called_directly = others
    return (
        f"{own * 1e3:.4f} ms | {ours / own:.3f} | {empty * 1e3:.4f} ms | {ours / (own + empty):.3f} "
        f"| {called / called_directly:.3f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--seconds", default="2", help="for each contestant of a model")
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--database")
    parser.add_argument("--out", help="also append the rows to this file")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(arguments.build).resolve() / "python"))
    return print_rows("execution_provider", HEADER, row, arguments)


if __name__ == "__main__":
    sys.exit(main())
