"""The execution provider: results are ONNX Runtime's own, parts that are refused stay there, executables are kept."""

import os
import threading
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from collage import onnxruntime_provider
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

FLOAT = TensorProto.FLOAT


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape):
    numbers = np.random.default_rng(len(name)).standard_normal(shape).astype("float32")
    return helper.make_tensor(name, FLOAT, shape, numbers.tobytes(), raw=True)


def model(nodes, inputs, outputs, weights=(), opset=17):
    graph = helper.make_graph(nodes, "net", inputs, outputs, list(weights))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def perceptron(rows: int | str = 4):
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h0"]),
        helper.make_node("Relu", ["h0"], ["h1"]),
        helper.make_node("MatMul", ["h1", "w1"], ["h2"]),
        helper.make_node("Softmax", ["h2"], ["y"], axis=-1),
    ]
    weights = [weight("w0", 16, 32), weight("w1", 32, 8)]
    return model(nodes, [value("x", [rows, 16])], [value("y", [rows, 8]), value("h1", [rows, 32])], weights)


def session(content, cache="cache", configure=None, **settings):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    settings = {"toolchains": "native", "budget": "5s", **settings}
    onnxruntime_provider.add_to(options, cache_folder=in_folder(cache), **settings)
    if configure is not None:
        configure(options)
    return onnxruntime.InferenceSession(content, options)


def nodes_by_provider(made):
    return {
        name: sum(
            len(group.get_nodes()) for group in made.get_provider_graph_assignment_info() if group.ep_name == name
        )
        for name in {group.ep_name for group in made.get_provider_graph_assignment_info()}
    }


def record(options):
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")


def expected(content, feeds):
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)


def x(rows=4, columns=16):
    return {"x": np.random.default_rng(rows).standard_normal((rows, columns)).astype("float32")}


class Provider(unittest.TestCase):
    def check(self, made, content, feeds):
        for ours, theirs in zip(made.run(None, feeds), expected(content, feeds), strict=True):
            self.assertEqual(ours.dtype, theirs.dtype)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_it_is_listed_and_takes_the_whole_model(self):
        made = session(perceptron(), configure=record)
        self.assertEqual(made.get_providers(), [onnxruntime_provider.get_ep_name(), "CPUExecutionProvider"])
        self.assertEqual(nodes_by_provider(made), {"CollageExecutionProvider": 4})
        self.check(made, perceptron(), x())

    def test_memory_of_any_alignment_is_read_and_written(self):
        made = session(perceptron())
        feeds = x()
        odd = np.empty(4 * 16 + 1, "float32")[1:].reshape(4, 16)
        odd[:] = feeds["x"]
        self.check(made, perceptron(), {"x": odd})
        binding = made.io_binding()
        outputs = [np.zeros(4 * 8 + 1, "float32")[1:].reshape(4, 8), np.zeros((4, 32), "float32")]
        binding.bind_cpu_input("x", feeds["x"])
        for name, output in zip(["y", "h1"], outputs, strict=True):
            binding.bind_output(name, "cpu", 0, "float32", output.shape, output.ctypes.data)
        for _ in range(2):
            made.run_with_iobinding(binding)
        for ours, theirs in zip(outputs, expected(perceptron(), feeds), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_executables_may_hold_kernels_of_onnx_runtime(self):
        made = session(perceptron(), "within", toolchains="onnxruntime", partition_for="onnxruntime")
        self.check(made, perceptron(), x())

    def test_open_sizes_may_be_others_in_every_run(self):
        content = perceptron("rows")
        made = session(content, configure=record)
        self.assertEqual(nodes_by_provider(made), {"CollageExecutionProvider": 4})
        for rows in (1, 7, 3, 64):
            self.check(made, content, x(rows))

    def test_nodes_that_are_refused_stay_with_onnx_runtime(self):
        nodes = [
            helper.make_node("MatMul", ["x", "w0"], ["h0"], name="first"),
            helper.make_node("Relu", ["h0"], ["h1"]),
            helper.make_node("Softmax", ["h1"], ["h2"]),
            helper.make_node("NGramRepeatBlock", ["ids", "h2"], ["h3"], domain="com.microsoft", ngram_size=2),
            helper.make_node("Abs", ["h3"], ["h4"]),
            helper.make_node("Tanh", ["h4"], ["h5"]),
            helper.make_node("Add", ["h5", "h1"], ["y"]),
        ]
        inputs = [value("x", [2, 16]), value("ids", [2, 5], TensorProto.INT64)]
        content = model(nodes, inputs, [value("y", [2, 16])], [weight("w0", 16, 16)])
        made = session(content, configure=record)
        self.assertEqual(nodes_by_provider(made), {"CollageExecutionProvider": 6, "CPUExecutionProvider": 1})
        self.check(made, content, {**x(2), "ids": np.array([[1, 2, 3, 1, 2], [4, 5, 6, 7, 8]], "int64")})

    def test_graphs_within_nodes_are_compiled_with_them(self):
        def branch(name, op):
            node = helper.make_node(op, ["h"], [name])
            return helper.make_graph([node], name, [], [value(name, [2, 16])])

        nodes = [
            helper.make_node("MatMul", ["x", "w0"], ["h"]),
            helper.make_node("If", ["c"], ["b"], then_branch=branch("t", "Relu"), else_branch=branch("e", "Tanh")),
            helper.make_node("Neg", ["b"], ["y"]),
        ]
        inputs = [value("x", [2, 16]), value("c", [], TensorProto.BOOL)]
        content = model(nodes, inputs, [value("y", [2, 16])], [weight("w0", 16, 16)])
        made = session(content, configure=record)
        self.assertEqual(nodes_by_provider(made), {"CollageExecutionProvider": 3})
        for condition in (True, False):
            self.check(made, content, {**x(2), "c": np.array(condition)})

    def test_executables_are_kept_by_content_and_settings(self):
        folder = in_folder("kept")
        session(perceptron(), cache="kept")
        self.assertEqual(len(os.listdir(folder)), 1)
        session(perceptron(), cache="kept")
        self.assertEqual(len(os.listdir(folder)), 1)
        session(perceptron(), cache="kept", budget="6s")
        self.assertEqual(len(os.listdir(folder)), 2)

    def test_a_damaged_executable_is_made_again(self):
        session(perceptron(), cache="damaged")
        (kept,) = os.scandir(in_folder("damaged"))
        with open(kept.path, "r+b") as file:
            file.truncate(1000)
        self.check(session(perceptron(), cache="damaged"), perceptron(), x())

    def test_strings_stay_with_onnx_runtime(self):
        nodes = [
            helper.make_node("Gather", ["words", "order"], ["same"]),
            helper.make_node("MatMul", ["x", "w0"], ["h0"]),
            helper.make_node("Relu", ["h0"], ["h1"]),
            helper.make_node("Softmax", ["h1"], ["y"]),
        ]
        text = TensorProto.STRING
        weights = [weight("w0", 16, 16), helper.make_tensor("order", TensorProto.INT64, [2], [1, 0])]
        inputs = [value("words", [2], text), value("x", [2, 16])]
        content = model(nodes, inputs, [value("same", [2], text), value("y", [2, 16])], weights)
        made = session(content, configure=record)
        self.assertEqual(nodes_by_provider(made), {"CollageExecutionProvider": 3, "CPUExecutionProvider": 1})
        feeds = {"words": np.array(["Ab", "cD"], dtype=object), **x(2)}
        words, scores = made.run(None, feeds)
        self.assertEqual(list(words), ["cD", "Ab"])
        np.testing.assert_allclose(scores, expected(content, feeds)[1], rtol=1e-4, atol=1e-5)

    def test_sessions_run_from_many_threads(self):
        made = session(perceptron())
        feeds = [x(4) for _ in range(8)]
        for i, one in enumerate(feeds):
            one["x"] += i
        results = [None] * len(feeds)

        def run(i):
            for _ in range(20):
                results[i] = made.run(None, feeds[i])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(feeds))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result, one in zip(results, feeds, strict=True):
            np.testing.assert_allclose(result[0], expected(perceptron(), one)[0], rtol=1e-4, atol=1e-5)

    def test_compiled_models_hold_their_executables_or_name_them(self):
        source = in_folder("net.onnx")
        with open(source, "wb") as file:
            file.write(perceptron())
        for embed in ("0", "1"):
            written = in_folder(f"context{embed}.onnx")

            def configure(options, written=written, embed=embed):
                options.add_session_config_entry("ep.context_enable", "1")
                options.add_session_config_entry("ep.context_file_path", written)
                options.add_session_config_entry("ep.context_embed_mode", embed)

            session(source, configure=configure)
            nodes = onnx.load(written, load_external_data=False).graph.node
            self.assertEqual([node.op_type for node in nodes], ["EPContext"])
            made = session(written, cache="unused")
            self.check(made, perceptron(), x())
        self.assertEqual(len([name for name in os.listdir(in_folder("")) if name.startswith("context0")]), 2)
        self.assertFalse(os.path.exists(in_folder("unused")))

    def test_settings_that_do_not_exist_and_contradictions_are_told(self):
        with self.assertRaisesRegex(Exception, "(?s)--budjet.*did you mean '--budget'"):
            session(perceptron(), budjet="1s")
        with self.assertRaisesRegex(Exception, "cache_folder: error: the folder of executables has no name"):
            options = onnxruntime_provider.options(cache_folder="")
            onnxruntime.InferenceSession(perceptron(), options)
        with self.assertRaisesRegex(Exception, "2 contradicts intra_op_num_threads=1"):
            session(perceptron(), threads=2)


if __name__ == "__main__":
    unittest.main()
