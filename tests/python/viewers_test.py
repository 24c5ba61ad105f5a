"""Files for other viewers, read by those viewers' own packages, ONNX's checker and Graphviz."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import types
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401


def collage(*arguments):
    """The command's output."""
    done = subprocess.run([sys.executable, "-m", "collage", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"collage {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def write_model(path):
    """A model whose nodes have slashes in their names, one none, and one that is folded."""
    random = np.random.default_rng(0)
    weight = numpy_helper.from_array(random.normal(size=(8, 3, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Neg", ["w"], ["minus_w"], "/block/neg"),
        helper.make_node("Conv", ["x", "minus_w"], ["c"], "/block/conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "/block/relu"),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Sigmoid", ["p"], ["y"], "/head/sigmoid"),
    ]
    shape = [1, 3, 16, 16]
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        [weight],
    )
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), path)


def model_explorer(module):
    """A module of Model Explorer with its data classes; its server, which the package imports first, is not needed."""
    if "model_explorer" not in sys.modules:
        found = importlib.util.find_spec("model_explorer")
        if found is None:
            raise unittest.SkipTest("the package ai-edge-model-explorer is not installed")
        package = types.ModuleType("model_explorer")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["model_explorer"] = package
    return importlib.import_module(f"model_explorer.{module}")


def typed(json_value, type_):
    """An object of one of the viewer's data classes; fails for fields that the class does not have."""
    try:
        import dacite
    except ImportError:
        raise unittest.SkipTest("the package dacite is not installed") from None
    return dacite.from_dict(type_, json_value, dacite.Config(strict=True))


class Viewers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        before = os.getcwd()
        cls.addClassCleanup(os.chdir, before)
        os.chdir(in_folder(""))
        write_model("model.onnx")
        collage("compile", "model.onnx", "-o", "model.clg", "--quiet", "--threads", "1", "--toolchains", "native")
        Path("p.json").write_text(
            collage("profile", "model.clg", "--seconds", "0.1", "--no-cold", "--trace", "t.json", "--json")
        )
        cls.profile = json.loads(Path("p.json").read_text())

    def export(self, *arguments):
        return json.loads(collage("export", "model.clg", "--json", *arguments))

    def test_graphs_for_model_explorer(self):
        self.export("--format", "model-explorer", "--model", "model.onnx", "--profile", "p.json", "-o", "graphs.json")
        builder = model_explorer("graph_builder")
        collection = json.loads(Path("graphs.json").read_text())
        # Its page takes an object with these keys for a collection, and refuses a list of such objects.
        self.assertEqual(list(collection), ["label", "graphs"])
        graphs = [typed(graph, builder.Graph) for graph in collection["graphs"]]
        self.assertEqual([graph.id for graph in graphs], ["partitions", "operators by partition"])
        for graph in graphs:
            ids = [node.id for node in graph.nodes]
            self.assertEqual(len(ids), len(set(ids)))
            for node in graph.nodes:
                for edge in node.incomingEdges:
                    self.assertIn(edge.sourceNodeId, ids)
        by_id = {node.id: node for node in graphs[1].nodes}
        self.assertEqual(by_id["/head/sigmoid"].label, "Sigmoid")
        self.assertIn("native", by_id["/head/sigmoid"].namespace)
        self.assertEqual(by_id["/head/sigmoid"].incomingEdges[0].sourceNodeId, "p", "a node without a name")
        self.assertEqual(by_id["/block/neg"].namespace, "", "it was folded into a constant")

    def test_node_data_for_model_explorer(self):
        report = self.export("--format", "node-data", "--model", "model.onnx", "--profile", "p.json", "-o", "data")
        self.assertEqual((report["nodes"], report["nodes_of_model"], report["measured"]), (4, 5, True))
        builder = model_explorer("node_data_builder")
        for name in ("microseconds", "share", "partition", "toolchain"):
            data = json.loads(Path("data", f"{name}.json").read_text())
            self.assertEqual(list(data), ["main_graph"], "the id of the graph, as the viewer's adapter calls it")
            results = data["main_graph"].pop("results")
            typed(data["main_graph"] | {"results": {}}, builder.GraphNodeData)
            self.assertEqual(set(results), {"/block/conv", "/block/relu", "p", "/head/sigmoid"})
            if name in ("microseconds", "share"):
                for result in results.values():
                    typed(result, builder.NodeDataResult)
                total = sum(result["value"] for result in results.values())
                # A change of layout, which some mixes have, is of no node.
                of_nodes = 1e6 * sum(step["p50_seconds"] for step in self.profile["steps"] if step["nodes"])
                whole = 1e6 * sum(step["p50_seconds"] for step in self.profile["steps"])
                wanted = 100 * of_nodes / whole if name == "share" else of_nodes
                self.assertAlmostEqual(total, wanted, delta=1e-6 * wanted)

    def test_a_model_that_netron_shows(self):
        self.export("--format", "onnx", "--model", "model.onnx", "--profile", "p.json", "-o", "seen.onnx")
        seen = onnx.load("seen.onnx")
        onnx.checker.check_model(seen)
        entries = {node.name: {e.key: e.value for e in node.metadata_props} for node in seen.graph.node}
        self.assertEqual(entries["/block/neg"], {})
        conv = entries["/block/conv"]
        self.assertEqual(conv["collage.toolchain"], "native")
        partition = int(conv["collage.partition"])
        step = next(step for step in self.profile["steps"] if step["partition"] == partition)
        self.assertIn("/block/conv", step["nodes"])
        self.assertAlmostEqual(float(conv["collage.partition_microseconds"]), 1e6 * step["p50_seconds"], delta=0.001)
        plain = onnx.load("model.onnx")
        for node in seen.graph.node:
            del node.metadata_props[:]
        self.assertEqual(seen, plain, "nothing else changes")

    def test_estimates_are_called_so(self):
        self.export("--format", "onnx", "--model", "model.onnx", "-o", "estimated.onnx")
        keys = {e.key for node in onnx.load("estimated.onnx").graph.node for e in node.metadata_props}
        self.assertNotIn("collage.microseconds", keys)

    def test_a_model_of_dynamic_shapes(self):
        model = onnx.load("model.onnx")
        for value in (model.graph.input[0], model.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
        onnx.save(model, "open.onnx")
        collage("compile", "open.onnx", "-o", "open.clg", "--quiet", "--threads", "1", "--toolchains", "native")
        quick = ("--no-cold", "--no-roof", "--no-counters")
        profile = json.loads(collage("profile", "open.clg", "--seconds", "0.1", *quick, "--dim", "batch=2", "--json"))
        nodes = {node for step in profile["steps"] for node in step["nodes"]}
        self.assertEqual(nodes, {"/block/conv", "/block/relu", "p", "/head/sigmoid"})
        self.assertEqual({step["kind"] for step in profile["steps"]}, {"any size"})
        Path("open.json").write_text(json.dumps(profile))
        for more in (("-o", "open-seen.onnx", "--format", "onnx"), ("-o", "open-data", "--format", "node-data")):
            collage("export", "open.clg", "--model", "open.onnx", "--profile", "open.json", *more)
        entries = {
            node.name: {e.key: e.value for e in node.metadata_props} for node in onnx.load("open-seen.onnx").graph.node
        }
        self.assertGreater(float(entries["/block/conv"]["collage.microseconds"]), 0)

    def test_graphviz_draws_it(self):
        self.export("--format", "dot", "--profile", "p.json", "-o", "drawn.dot")
        if shutil.which("dot") is None:
            self.skipTest("Graphviz is not installed")
        drawn = subprocess.run(["dot", "-Tsvg", "drawn.dot"], capture_output=True, text=True)
        self.assertEqual((drawn.returncode, drawn.stderr), (0, ""))
        self.assertIn("native", drawn.stdout)

    def test_a_trace_for_perfetto(self):
        """By a reader of the format: Perfetto's own is a program that its package downloads."""
        try:
            from chrometrace import TraceEvent, TraceEventType
        except ImportError:
            self.skipTest("the package chrometrace is not installed")
        events = json.loads(Path("t.json").read_text())["traceEvents"]
        read = [TraceEvent.from_dict({"ts": 0, **event}) for event in events]
        slices = [event for event in read if event.event_type == TraceEventType.COMPLETE and event.thread_id == 0]
        self.assertEqual(len([one for one in slices if one.categories != "region"]), len(self.profile["timeline"]))
        ends = 0.0
        for one in slices:
            if one.categories == "region":
                continue
            self.assertGreaterEqual(one.timestamp_us, ends, "steps follow each other")
            ends = one.timestamp_us + one.duration_us
        self.assertTrue(any(event.event_type == TraceEventType.COUNTER for event in read))

    def test_perfetto_loads_the_trace(self):
        program = os.environ.get("COLLAGE_TEST_PERFETTO", "")
        if not program:
            self.skipTest("COLLAGE_TEST_PERFETTO does not name Perfetto's trace_processor_shell, which no package has")
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        with TraceProcessor(trace="t.json", config=TraceProcessorConfig(bin_path=program)) as processor:
            rows = list(processor.query("select name from slice where category != 'region'"))
            self.assertEqual(len(rows), len(self.profile["timeline"]))
            self.assertEqual(len(list(processor.query("select * from counter"))) > 0, True)


if __name__ == "__main__":
    unittest.main()
