"""Passes: by name, in sequence, under a context, watched, written in Python. Targets."""

import contextlib
import io
import threading
import unittest

import collage
from collage import relay, transform

TEXT = "def @main(%x: Tensor[(2), float32]) { nn.relu(add(%x, add(1f, 2f))) }"


class Passes(unittest.TestCase):
    def test_every_pass_by_its_name(self):
        module = collage.parse(TEXT)
        for one in transform.passes():
            with self.subTest(one.name):
                self.assertEqual(getattr(transform, one.name)().name, one.name)
                config = {
                    "relay.MergeComposite.toolchain": "dnnl",
                    "relay.AnnotateTarget.targets": "dnnl",
                    "relay.collage.targets": "llvm",
                    "relay.collage.estimator": 'mock={"op_cost": {"native": 1}}',
                }
                with transform.PassContext(config=config):
                    self.assertIn("main", one(module))
        with self.assertRaisesRegex(AttributeError, "no such pass"):
            _ = transform.FuseOp

    def test_sequential_obeys_the_context(self):
        fold = transform.Sequential(["FoldConstant", "FuseOps"])
        with transform.PassContext(opt_level=3):
            self.assertIn("3f", str(fold(collage.parse(TEXT))))
        with transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
            self.assertNotIn("3f", str(fold(collage.parse(TEXT))))
        with transform.PassContext(opt_level=0):
            self.assertNotIn("3f", str(fold(collage.parse(TEXT))))
        with transform.PassContext(opt_level=0, required_pass=["FoldConstant"]):
            self.assertIn("3f", str(fold(collage.parse(TEXT))))

    def test_options_reach_passes(self):
        fuse = transform.Sequential(["FuseOps"])
        with transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 1}):
            self.assertEqual(str(fuse(collage.parse(TEXT))).count("Primitive"), 3)

    def test_contexts_nest_and_are_each_threads_own(self):
        self.assertEqual(transform.PassContext.current().opt_level, 2)
        levels = []
        with transform.PassContext(opt_level=3) as outer:
            with transform.PassContext(opt_level=1):
                self.assertEqual(transform.PassContext.current().opt_level, 1)
            self.assertIs(transform.PassContext.current(), outer)
            thread = threading.Thread(target=lambda: levels.append(transform.PassContext.current().opt_level))
            thread.start()
            thread.join()
        self.assertEqual(levels, [2])

    def test_wrong_contexts(self):
        with self.assertRaisesRegex(collage.InputError, "FuseOps.max_depth"):
            transform.PassContext(config={"relay.FuseOps.max_dept": 1})
        with self.assertRaisesRegex(collage.InputError, "max_depth"):
            transform.PassContext(config={"relay.FuseOps.max_depth": "deep"})
        with self.assertRaisesRegex(collage.InputError, "FuseOps"):
            transform.PassContext(disabled_pass=["FuseOp"])
        with self.assertRaises(KeyError):
            transform.PassContext().get("relay.nothing")
        self.assertEqual(transform.PassContext().get("relay.collage.enable_collage"), False)

    def test_passes_of_python(self):
        def to_tanh(function, module):
            def change(node):
                if isinstance(node, relay.Call) and node.op == relay.get_op("nn.relu"):
                    return relay.tanh(*node.args)
                return node

            return relay.Function(function.params, change(function.body))

        made = transform.function_pass(to_tanh, "ToTanh", required=["InferType"], summary="relu becomes tanh")
        with transform.PassContext(opt_level=3):
            result = transform.Sequential([made, "FoldConstant"])(collage.parse(TEXT))
        self.assertIn("tanh", str(result))
        self.assertIn("3f", str(result))
        self.assertIsNotNone(result.main.checked_type)

    def test_errors_of_python_passes_arrive(self):
        def broken(module):
            raise LookupError("mine")

        with self.assertRaisesRegex(LookupError, "mine"):
            transform.module_pass(broken, "Broken")(collage.parse(TEXT))

    def test_instruments(self):
        class Watch:
            def __init__(self):
                self.seen = []

            def should_run(self, pass_, module):
                return pass_.name != "FuseOps"

            def before(self, pass_, module):
                self.seen.append(("before", pass_.name))

            def after(self, pass_, module):
                self.seen.append(("after", len(module.functions)))

        watch, timing = Watch(), transform.Timing()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            with transform.PassContext(opt_level=3, instruments=[watch, timing, transform.PrintIR(["FoldConstant"])]):
                result = transform.Sequential(["FoldConstant", "FuseOps"])(collage.parse(TEXT))
        self.assertNotIn("Primitive", str(result))
        self.assertEqual(watch.seen, [("before", "FoldConstant"), ("after", 1)])
        self.assertGreater(timing.seconds["FoldConstant"], 0)
        self.assertIn("// behind FoldConstant", printed.getvalue())


class Targets(unittest.TestCase):
    def test_options_and_host(self):
        host = collage.Target("llvm -mcpu=x86-64-v3")
        target = collage.Target("llvm -compiler=dnnl -num_cores=4", host)
        self.assertEqual((target.kind, target.compiler, target.device_type), ("llvm", "dnnl", 1))
        self.assertEqual(target.options["num_cores"], 4)
        self.assertEqual(collage.Target(str(target)).options["host"], str(host))
        self.assertTrue(collage.Target("cuda -compiler=cutlass", "llvm").refines(collage.Target("cuda", "llvm")))

    def test_lists(self):
        both = collage.target.as_targets({1: "llvm", 2: collage.Target("cuda")})
        self.assertEqual([one.kind for one in both], ["llvm", "cuda"])
        self.assertEqual(collage.target.as_targets(None), [collage.Target("llvm")])

    def test_errors(self):
        with self.assertRaisesRegex(collage.InputError, "character 1"):
            collage.Target("lvm")
        with self.assertRaisesRegex(collage.InputError, "twice"):
            collage.Target("llvm -mcpu=a -mcpu=b")


if __name__ == "__main__":
    unittest.main()
