"""The main job from Python: options, report, progress, interruption, the RFC's fragment."""

import inspect
import json
import os
import subprocess
import sys
import unittest

import numpy as np

import collage
import collage as tvm
from collage import relay
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

MODELS = os.environ.get("COLLAGE_MODELS", os.path.expanduser("~/.cache/collage/models"))


def network(channels=4):
    random = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.const(random.standard_normal((channels, 3, 3, 3)).astype("float32"))
    return relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, w, padding=[1, 1])))


def mnist():
    """RFC 0.81's module, with weights."""
    random = np.random.default_rng(5)

    def weight(*shape):
        return relay.const((random.standard_normal(shape) / 8).astype("float32"))

    text = """def @main(%x: Tensor[(1, 1, 28, 28), float32]) -> Tensor[(1, 10), float32] {
      %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
      %1 = nn.conv2d(%0, meta[relay.Constant][0], padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5]);
      %2 = add(%1, meta[relay.Constant][1]);
      %3 = nn.relu(%2);
      %4 = nn.max_pool2d(%3, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
      %5 = nn.pad(%4, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
      %6 = nn.conv2d(%5, meta[relay.Constant][2], padding=[0, 0, 0, 0], channels=16, kernel_size=[5, 5]);
      %7 = add(%6, meta[relay.Constant][3]);
      %8 = nn.relu(%7);
      %9 = nn.max_pool2d(%8, pool_size=[3, 3], strides=[3, 3], padding=[0, 0, 0, 0]);
      %10 = reshape(%9, newshape=[1, 256]);
      %11 = nn.dense(%10, meta[relay.Constant][4], units=None, out_dtype="float32");
      add(%11, meta[relay.Constant][5])
    }"""
    shapes = [(8, 1, 5, 5), (8, 1, 1), (16, 8, 5, 5), (16, 1, 1), (10, 256), (1, 10)]
    return collage.parse(text, "mnist", [weight(*shape) for shape in shapes])


def available(name):
    return any(row["name"] == name and row["available"] for row in collage.toolchains())


def compile_as_printed(mod):
    """RFC 0.81's lines, for the processor."""
    if not available("dnnl"):
        raise unittest.SkipTest("dnnl is not here")
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 1, "relay.collage.enable_collage": True}):
        host_target = tvm.target.Target("llvm")
        generic_target = tvm.target.Target("llvm", host_target)
        dnnl_target = tvm.target.Target("llvm -compiler=dnnl", host_target)
        targets = [generic_target, dnnl_target]
        return tvm.relay.vm.compile(mod, target=targets)


class RfcFragment(unittest.TestCase):
    def test_as_printed_on_the_processor(self):
        mod = mnist()
        exe = compile_as_printed(mod)
        x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype("float32")
        result = tvm.relay.vm.VirtualMachine(exe).run(x)
        reference = tvm.relay.vm.compile(mod)
        self.assertIsNone(reference.plan)
        np.testing.assert_allclose(result, tvm.relay.vm.VirtualMachine(reference).run(x), rtol=1e-3, atol=1e-4)
        report = exe.plan.report
        self.assertLessEqual({name for one in report["play_off"] for name in one["partitions"]}, {"native", "dnnl"})
        self.assertGreater(report["search"]["candidates"], 0)
        path = in_folder("mnist.clg")
        exe.save(path)
        again = tvm.relay.vm.VirtualMachine(tvm.relay.vm.Executable.load(path)).run(x)
        np.testing.assert_allclose(again, result, rtol=1e-6)

    def test_standard_models(self):
        for name in ["mnist", "resnet50"]:
            path = os.path.join(MODELS, "small", name)
            if not os.path.exists(path + ".npz"):
                self.skipTest(f"{path}.onnx is not there; run tools/models/prepare-tests")
            arrays = np.load(path + ".npz")
            exe = compile_as_printed(collage.frontend.from_onnx(path + ".onnx"))
            inputs = {port.name: arrays["in." + port.name] for port in exe.plan.inputs}
            results = exe.plan.run(inputs)
            self.assertGreater(len(results), 0)
            for output, value in results.items():
                np.testing.assert_allclose(value, arrays["out." + output], rtol=1e-3, atol=1e-4, err_msg=name)


class Compiling(unittest.TestCase):
    def test_report_and_progress(self):
        seen = []
        exe = collage.compile(network(), threads=1, toolchains=["native"], progress=seen.append)
        phases = list(dict.fromkeys(one.phase for one in seen))
        self.assertEqual(phases, ["import", "candidates", "search", "play-off", "explain"])
        self.assertGreater(max(one.done for one in seen if one.phase == "search"), 0)
        self.assertEqual(exe.report["threads"], 1)
        self.assertEqual([row["name"] for row in exe.report["toolchains"] if row["takes_part"]], ["native"])
        self.assertEqual(exe.report["operators"], 2)
        again = collage.compile(network(), threads=1, toolchains=["native"])
        self.assertEqual(again.report["search"]["measured"], 0)

    def test_report_is_that_of_the_command(self):
        from onnx import TensorProto, helper

        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", ports[:1], ports[1:])
        path = in_folder("exp.onnx")
        with open(path, "wb") as file:
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
            file.write(model.SerializeToString())
        options = ["--threads", "1", "--partition-for", "native", "--quiet", "--json", "-o", path + ".clg"]
        ran = subprocess.run(
            [sys.executable, "-m", "collage", "compile", path, *options], capture_output=True, timeout=60
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        command = json.loads(ran.stdout)
        ours = collage.compile(path, threads=1, partition_for="native").report

        def keys(value):
            if isinstance(value, dict):
                return {key: keys(inner) for key, inner in value.items()}
            return [keys(inner) for inner in value[:1]] if isinstance(value, list) else None

        self.assertEqual(keys(ours), keys(command))
        self.assertEqual(ours["operators"], command["operators"])

    def test_files_and_choices(self):
        path, choice = in_folder("a.clg"), in_folder("choice.json")
        collage.compile(network(5), path, threads=1, partition_for="native", write_partitioning=choice)
        self.assertTrue(os.path.getsize(path) > 0)
        exe = collage.compile(network(5), threads=1, partitioning=choice)
        self.assertEqual(exe.report["winner"], "given")

    def test_inputs_of_ones_own(self):
        x = np.random.default_rng(8).standard_normal((1, 3, 8, 8)).astype("float32")
        path = in_folder("inputs.npz")
        np.savez(path, **{"in.x": x})
        for given in ({"x": x}, path, [{"x": x}, path]):
            exe = collage.compile(network(8), threads=1, partition_for="native", check_inputs=given)
            self.assertEqual(exe.report["winner"], "native")
        for given, problem in [
            ({"y": x}, "no values for input 'x'"),
            ({"x": x, "y": x}, "the model has no input 'y'"),
            ({"x": x[0]}, "got float32 \\(3, 8, 8\\)"),
            ({"x": x.astype("float64")}, "got float64"),
        ]:
            with self.assertRaisesRegex(collage.InputError, problem):
                collage.compile(network(8), threads=1, partition_for="native", check_inputs=given)

    def test_onnx_model(self):
        from onnx import TensorProto, helper

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "first")], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        exe = collage.compile(model, shapes={"x": (2, 3)}, threads=1, partition_for="native")
        self.assertEqual([port.name for port in exe.outputs], ["y"])
        self.assertEqual(exe.partitions[0].nodes, ["first"])
        np.testing.assert_array_equal(exe(np.full((2, 3), -1, "float32")), np.zeros((2, 3)))

    def test_should_stop_ends_measuring(self):
        exe = collage.compile(
            network(6), threads=1, toolchains=["native"], max_measurements=3, should_stop=lambda: False
        )
        self.assertLessEqual(exe.report["search"]["measured"], 3)
        exe = collage.compile(network(7), threads=1, toolchains=["native"], should_stop=lambda: True)
        self.assertEqual((exe.report["search"]["measured"], exe.report["search"]["budget_spent"]), (0, True))

    def test_what_callbacks_raise_arrives(self):
        def broken(progress):
            if progress.phase == "search":
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            collage.compile(network(8), threads=1, progress=broken)

    def test_wrong_options(self):
        with self.assertRaisesRegex(collage.InputError, "nothing"):
            collage.compile(network(), toolchains=["nothing"])
        with self.assertRaisesRegex(collage.InputError, "nothing"):
            collage.compile(network(), target="llvm -compiler=nothing")
        with self.assertRaisesRegex(collage.InputError, "guess"):
            collage.compile(network(), threads=1, toolchains=["native"], search="guess")
        with self.assertRaisesRegex(collage.InputError, "duration"):
            collage.compile(network(), budget="soon")
        with self.assertRaisesRegex(collage.InputError, "percentile: error: expected a value from 1 to 99, got 0"):
            collage.compile(network(), percentile=0)
        with self.assertRaisesRegex(collage.InputError, "shapes"):
            collage.compile(network(), shapes={"x": (1,)})
        with self.assertRaisesRegex(collage.InputError, "rule"):
            collage.compile(network(), target="llvm -partition_rule='{}'")

    def test_settings_are_arguments(self):
        rows = json.loads(collage._core.settings_table())
        signature = inspect.signature(collage.compile)
        self.assertEqual(set(collage.Settings.__annotations__), {row["name"] for row in rows})
        self.assertLess({row["name"] for row in rows}, set(signature.parameters))
        self.assertEqual(signature.parameters["evolution_budget"].default, "30m")
        self.assertIsNone(signature.parameters["threads"].default)
        for row in rows:
            self.assertIn(f"        {row['name']}: ", collage.compile.__doc__)
        defaults = {row["name"]: signature.parameters[row["name"]].default for row in rows}
        short = {"threads": np.int64(1), "toolchains": "native", "max_measurements": 0, "partition_for": "native"}
        self.assertEqual(collage.compile(network(5), **{**defaults, **short}).report["threads"], 1)

    def test_wrong_arguments_are_named(self):
        with self.assertRaisesRegex(TypeError, "there is no setting 'thread'; did you mean 'threads'?"):
            collage.compile(network(), thread=1)
        for given, problem in [
            ({"threads": "1"}, "threads: error: expected an integer from 1 to 1024, got the text '1'"),
            ({"threads": True}, "threads: error: expected an integer from 1 to 1024, got True"),
            ({"threads": 1 << 70}, "threads: error: expected an integer from 1 to 1024"),
            ({"budget": -1}, "budget: error: a duration is not below 0 seconds, got -1"),
            ({"toolchains": [1]}, r"toolchains: error: expected names, separated by commas, got \[1\]"),
            ({"shapes": {"x": 3}}, r"shapes: error: expected shapes by the names of inputs, got \{'x': 3\}"),
            ({"search": "swep"}, "did you mean 'sweep'?"),
            ({"tuning_budget": "xtrials"}, "tuning_budget: error: malformed tuning budget 'xtrials'"),
            ({"partitioning": "no.json"}, "partitioning: error: there is no file 'no.json'"),
        ]:
            with self.subTest(given=given), self.assertRaisesRegex(collage.InputError, problem):
                collage.compile(network(), **given)

    def test_a_target_may_bring_its_own_rule(self):
        singles = '{"rule": "OnlyValid", "config": {"max_depth": 1}, "sub_rule": {"rule": "OpCallByKind"}}'
        target = tvm.target.Target(f"llvm -partition_rule='{singles}'")
        executable = collage.compile(network(), target=target, threads=1, database=in_folder("rule.db"))
        self.assertTrue(all("+" not in one.operators for one in executable.partitions))

    def test_targets_tell_toolchains_their_options(self):
        if not available("openvino"):
            self.skipTest("openvino is not here")
        target = tvm.target.Target("llvm -compiler=openvino -inference_precision=bf16")
        database = in_folder("options.db")
        exe = collage.compile(network(), target=["llvm", target], threads=1, database=database)
        took_part = [name for row in exe.report["toolchains"] for name in row["takes_part_as"]]
        self.assertCountEqual(took_part, ["native", "openvino -inference_precision=bf16"])
        with self.assertRaisesRegex(collage.InputError, "f32, bf16 or f16, got 'f64'"):
            wrong = "llvm -compiler=openvino -inference_precision=f64"
            collage.compile(network(), target=wrong, threads=1, database=database)
        options = {row["name"]: row["options"] for row in collage.toolchains()}
        self.assertEqual(options["openvino"][0]["name"], "inference_precision")
        with self.assertRaisesRegex(collage.InputError, "'high' is not one of exact, standard"):
            collage.compile(network(), accuracy="high", database=database)

    def test_progress_is_printed(self):
        code = (
            "import collage; from collage import relay; x = relay.var('x', shape=(2,));"
            "collage.compile(relay.Function([x], relay.exp(x)), threads=1, partition_for='native', progress=True)"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)
        self.assertIn("collage: search", ran.stderr)

    def test_small_standard_model(self):
        path = os.path.join(MODELS, "small", "resnet50")
        if not os.path.exists(path + ".npz"):
            self.skipTest(f"{path}.onnx is not there; run tools/models/prepare-tests")
        arrays = np.load(path + ".npz")
        exe = collage.compile(path + ".onnx", threads=1, partition_for="native")
        results = exe.run({port.name: arrays["in." + port.name] for port in exe.inputs})
        for name, value in results.items():
            np.testing.assert_allclose(value, arrays["out." + name], rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
