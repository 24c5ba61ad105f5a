"""Sessions with ONNX Runtime's interface: the same results, a cache by content, and nothing that is silently ignored."""

import importlib.util
import logging
import os
import unittest
import warnings
from unittest import mock

import numpy as np

import collage
import collage.onnxruntime_api as ort
from collage import relay, transform
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401


def network(scale=1.0):
    x = relay.var("image", shape=(2, 8))
    y = relay.nn.softmax(relay.nn.dense(x, relay.const(np.full((4, 8), scale, "float32"))))
    return collage.frontend.to_onnx(
        relay.Function([x], relay.Tuple([y, relay.nn.relu(x)])), output_names=["logits", "pos"]
    )


def options(threads=1):
    made = ort.SessionOptions()
    made.intra_op_num_threads = threads
    return made


def session(model, *args, **settings):
    given = args or (options(),)
    return ort.InferenceSession(model, *given, cache_folder=in_folder("cache"), toolchains="native", **settings)


def kept():
    return len(os.listdir(in_folder("cache"))) if os.path.exists(in_folder("cache")) else 0


def named_batch():
    """A model of an open size, with what a head may hold."""
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("ids", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    w = helper.make_tensor("w", TensorProto.FLOAT, (4, 4), np.eye(4, dtype="float32").tobytes(), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["ids", "w"], ["y"])], "net", [x], [y], [w], doc_string="inner"
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17)],
        producer_name="tests",
        domain="d",
        model_version=3,
        doc_string="outer",
    )
    helper.set_model_props(made, {"classes": "cat,dog"})
    return made


class Sessions(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(0).standard_normal((2, 8)).astype("float32")
        self.path = in_folder("m.onnx")
        with open(self.path, "wb") as file:
            file.write(network())

    def test_as_onnx_runtime(self):
        if importlib.util.find_spec("onnxruntime") is None:
            self.skipTest("the wheel onnxruntime is not installed")
        import onnxruntime

        theirs = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        ours = session(self.path, options(), ["CPUExecutionProvider"])
        for names in (None, ["logits"], ["pos", "logits"]):
            for mine, other in zip(
                ours.run(names, {"image": self.x}), theirs.run(names, {"image": self.x}), strict=True
            ):
                np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)
        for mine, other in [
            (ours.get_inputs(), theirs.get_inputs()),
            (ours.get_outputs(), theirs.get_outputs()),
        ]:
            self.assertEqual([(a.name, a.shape, a.type) for a in mine], [(a.name, a.shape, a.type) for a in other])

    def test_head_of_the_model(self):
        found = session(named_batch().SerializeToString(), dims={"batch": 2}).get_modelmeta()
        self.assertEqual(found, ort.ModelMetadata("tests", "d", "outer", 3, "net", "inner", {"classes": "cat,dog"}))
        self.assertEqual(session(network()).get_modelmeta(), ort.ModelMetadata("collage", graph_name="main"))

    def test_the_cache_is_by_content(self):
        before, path = kept(), in_folder("other.onnx")
        with open(path, "wb") as file:
            file.write(network(3.0))
        with self.assertLogs("collage.onnxruntime_api", logging.INFO) as logs:
            session(path)
        self.assertIn("compiling for 1 threads, once", logs.output[0])
        with self.assertNoLogs("collage.onnxruntime_api", logging.INFO):
            session(path)
            session(network(3.0))
        self.assertEqual(kept(), before + 1)
        session(network(4.0))
        session(path, opt_level=2)
        self.assertEqual(kept(), before + 3)

    def test_damaged_executables_are_made_again(self):
        session(self.path)
        for name in os.listdir(in_folder("cache")):
            with open(os.path.join(in_folder("cache"), name), "r+b") as file:
                file.truncate(50)
        with self.assertLogs("collage.onnxruntime_api", logging.WARNING) as logs:
            session(self.path).run(None, {"image": self.x})
        self.assertIn("is compiled again", logs.output[0])

    def test_weights_beside_the_model_count(self):
        import onnx

        path = in_folder("external.onnx")
        onnx.save_model(
            named_batch(),
            path,
            save_as_external_data=True,
            location="external.bin",
            size_threshold=0,
            convert_attribute=True,
        )
        x = np.ones((1, 4), "float32")
        fixed = {"dims": {"batch": 1}}
        np.testing.assert_allclose(session(path, **fixed).run(None, {"ids": x})[0], x)
        with open(in_folder("external.bin"), "r+b") as file:
            file.write((3 * np.eye(4, dtype="float32")).tobytes())
        np.testing.assert_allclose(session(path, **fixed).run(None, {"ids": x})[0], 3 * x)

    def test_sizes_that_are_open(self):
        model = named_batch().SerializeToString()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quiet = options()
            quiet.log_severity_level = 3  # the warning that nothing is searched
            found = session(model, quiet)
        self.assertEqual(found.get_inputs()[0].shape, ["batch", 4])
        for rows in (1, 5):
            x = np.full((rows, 4), 2, "float32")
            np.testing.assert_allclose(found.run(["y"], {"ids": x})[0], x)
        fixed = options()
        fixed.add_free_dimension_override_by_name("batch", 3)
        self.assertEqual(session(model, fixed).get_inputs()[0].shape, [3, 4])

    def test_threads(self):
        self.assertEqual(session(self.path, options(2)).executable.num_threads, 2)
        with mock.patch("collage._core.available_processors", return_value=2):
            self.assertEqual(session(self.path, options(0)).executable.num_threads, 2)
        self.assertEqual(session(self.path, options(0), threads=1).executable.num_threads, 1)
        with self.assertRaisesRegex(collage.InputError, "threads: error: 2 contradicts intra_op_num_threads=1"):
            session(self.path, threads=2)

    def test_executables(self):
        path = in_folder("m.clg")
        session(self.path).executable.save(path)
        with open(path, "rb") as file:
            data = file.read()
        for given in (path, data):
            found = ort.InferenceSession(given, options())
            np.testing.assert_allclose(found.run(["pos"], {"image": self.x})[0], np.maximum(self.x, 0))
            with self.assertRaisesRegex(collage.UnsupportedError, "does not hold the metadata"):
                found.get_modelmeta()
        with self.assertRaisesRegex(collage.InputError, "compiled for 1 threads, not 2"):
            ort.InferenceSession(path, options(2))
        with self.assertRaisesRegex(collage.InputError, "budget: error: the model is compiled already"):
            ort.InferenceSession(path, budget="1s")
        overridden = options()
        overridden.add_free_dimension_override_by_name("batch", 3)
        with self.assertRaisesRegex(collage.InputError, "leave out overrides"):
            ort.InferenceSession(path, overridden)

    def test_bound_arrays(self):
        found = session(self.path)
        aligned = collage.empty((2, 8))
        unaligned = np.zeros(2 * 8 * 4 + 4, "uint8")[4:].view("float32").reshape(2, 8)
        result = collage.empty((2, 8))
        for array in (aligned, unaligned):
            binding = found.io_binding()
            binding.bind_cpu_input("image", array)
            binding.bind_output("pos", array=result)
            binding.bind_output("logits")
            for value in (1, 2):  # what is bound is read in every run
                array[...] = value
                found.run_with_iobinding(binding)
                first, second = binding.copy_outputs_to_cpu()
                np.testing.assert_allclose(first, array)
                np.testing.assert_allclose(second, np.full((2, 4), 0.25))
                np.testing.assert_allclose(result, array)
        with self.assertRaisesRegex(collage.InputError, "there is no input 'x'"):
            binding.bind_cpu_input("x", aligned)
        with self.assertRaisesRegex(collage.InputError, "there is no output 'x'"):
            binding.bind_output("x")
        with self.assertRaisesRegex(collage.UnsupportedError, "not on 'cuda'"):
            binding.bind_output("pos", "cuda")
        with self.assertRaisesRegex(collage.InputError, "has not been set"):
            found.run_with_iobinding(found.io_binding())
        with self.assertRaisesRegex(AttributeError, "no IOBinding.bind_ortvalue_input"):
            binding.bind_ortvalue_input("image", None)


class Refused(unittest.TestCase):
    def test_options(self):
        made = ort.SessionOptions()
        for name, value in [
            ("graph_optimization_level", ort.GraphOptimizationLevel.ORT_ENABLE_BASIC),
            ("execution_mode", ort.ExecutionMode.ORT_PARALLEL),
            ("enable_profiling", True),
            ("enable_mem_pattern", False),
            ("inter_op_num_threads", 2),
            ("intra_op_num_threads", -1),
            ("optimized_model_filepath", "m.onnx"),
            ("use_deterministic_compute", True),
        ]:
            before = getattr(made, name)
            with self.subTest(name), self.assertRaisesRegex(collage.UnsupportedError, f"^{name}: error: .*\nhint: "):
                setattr(made, name, value)
            self.assertEqual(getattr(made, name), before)
            setattr(made, name, before)
        with self.assertRaisesRegex(AttributeError, "no session option 'threads'; there are: .*intra_op_num_threads"):
            made.threads = 1
        with self.assertRaisesRegex(AttributeError, "no SessionOptions.register_custom_ops_library"):
            made.register_custom_ops_library("x.so")
        with self.assertRaisesRegex(collage.UnsupportedError, "no session option 'session.load_model_format'"):
            made.add_session_config_entry("session.load_model_format", "ORT")

    def test_providers(self):
        for providers in (
            None,
            [],
            ort.get_available_providers(),
            ["CPUExecutionProvider"],
            [("CPUExecutionProvider", {})],
        ):
            self.assertEqual(session(network(), options(), providers).get_providers(), ["CollageExecutionProvider"])
        for providers, provider_options, problem in [
            (["CUDAExecutionProvider", "CPUExecutionProvider"], None, "there is no provider 'CUDAExecutionProvider'"),
            ("TensorrtExecutionProvider", None, "there is no provider 'TensorrtExecutionProvider'"),
            ([("CPUExecutionProvider", {"arena": 1})], None, "provider 'CPUExecutionProvider' has no options"),
            (["CPUExecutionProvider"], [{"arena": 1}], "providers have no options"),
        ]:
            with self.subTest(providers=providers), self.assertRaisesRegex(collage.UnsupportedError, problem):
                session(network(), options(), providers, provider_options)

    def test_sessions(self):
        for settings, problem in [
            ({"dump": "folder"}, "dump: error: a session takes no such setting"),
            ({"search": lambda task: []}, "search: error: a session takes no such setting"),
            ({"explanation": "file.json"}, "explanation: error: a session takes no such setting"),
        ]:
            with self.assertRaisesRegex(collage.UnsupportedError, problem):
                session(network(), **settings)
        with (
            transform.PassContext(opt_level=1),
            self.assertRaisesRegex(collage.UnsupportedError, "takes no PassContext"),
        ):
            session(network())
        with self.assertRaisesRegex(collage.InputError, "sess_options: error: expected SessionOptions of this module"):
            session(network(), object())
        with self.assertRaisesRegex(FileNotFoundError, "cannot open"):
            session(in_folder("missing.onnx"))
        with self.assertRaisesRegex(collage.InputError, "not an ONNX model"):
            session(b"garbage" * 100)
        with self.assertRaisesRegex(TypeError, "there is no setting 'disabled_optimizers'"):
            session(network(), disabled_optimizers=[])
        found = session(network())
        with self.assertRaisesRegex(collage.UnsupportedError, "run options"):
            found.run(None, {}, object())
        with self.assertRaisesRegex(AttributeError, "no InferenceSession.end_profiling"):
            found.end_profiling()
        with self.assertRaisesRegex(AttributeError, "has no 'OrtValue'; it has: "):
            _ = ort.OrtValue


if __name__ == "__main__":
    unittest.main()
