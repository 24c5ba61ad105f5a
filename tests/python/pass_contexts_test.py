"""A PassContext around a compilation: its passes run, or do not, and are watched."""

import os
import unittest
import warnings

import numpy as np

import collage
from collage import relay, transform
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401

NORM = """def @main(%x: Tensor[(2, 8), float32]) {
  nn.relu(nn.batch_norm(%x, meta[relay.Constant][0], meta[relay.Constant][0], meta[relay.Constant][0],
                        meta[relay.Constant][0]).0)
}"""
SEARCH = {"relay.collage.enable_collage": True}


def norm():
    return collage.parse(NORM, "norm", [relay.const(np.linspace(0.5, 2, 8).astype("float32"))])


class Watch:
    """Notes which passes run, and which operators each leaves; bars some."""

    def __init__(self, *barred):
        self.seen = []
        self.operators = {}
        self._barred = barred

    def should_run(self, pass_, module):
        return pass_.name not in self._barred

    def after(self, pass_, module):
        self.seen.append(pass_.name)
        self.operators[pass_.name] = str(module)


def compile_alone(**settings):
    return collage.compile(norm(), threads=1, partition_for="native", **settings)


class Contexts(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(2).standard_normal((2, 8)).astype("float32")
        self.expected = relay.vm.VirtualMachine(relay.vm.compile(norm())).run(self.x)

    def agrees(self, executable):
        np.testing.assert_allclose(executable(self.x), self.expected, rtol=1e-5, atol=1e-6)

    def test_an_instrument_sees_the_passes_of_a_compilation(self):
        watch, timing = Watch(), transform.Timing()
        with transform.PassContext(instruments=[watch, timing]):
            self.agrees(compile_alone())
        self.assertIn("nn.batch_norm", watch.operators["qnn.CanonicalizeOps"])
        self.assertNotIn("nn.batch_norm", watch.operators["SimplifyInference"])
        for name in (
            "FoldConstant",
            "FoldScaleAxis",
            "EliminateCommonSubexpr",
        ):  # up to level 3, though 2 is Sequential's
            self.assertIn(name, watch.seen)
            self.assertGreater(timing.seconds[name], 0)
        self.assertNotIn("CombineParallelConv2D", watch.seen)
        watch.seen.clear()
        compile_alone()
        self.assertEqual(watch.seen, [])

    def test_a_disabled_pass_is_not_run(self):
        watch = Watch()
        with transform.PassContext(disabled_pass=["SimplifyInference"], instruments=[watch]):
            executable = compile_alone()
        self.assertNotIn("SimplifyInference", watch.seen)
        self.assertIn("nn.batch_norm", watch.operators["DuplicateDequantize"])
        self.agrees(executable)

    def test_an_instrument_bars_a_pass(self):
        watch = Watch("SimplifyInference")
        with transform.PassContext(instruments=[watch]):
            self.agrees(compile_alone())
        self.assertNotIn("SimplifyInference", watch.seen)
        self.assertIn("nn.batch_norm", watch.operators["DuplicateDequantize"])

    def test_levels_and_required_passes(self):
        watch = Watch()
        with transform.PassContext(opt_level=1, required_pass=["FoldScaleAxis"], instruments=[watch]):
            self.agrees(compile_alone())
        self.assertIn("FoldScaleAxis", watch.seen)
        self.assertIn("SimplifyInference", watch.seen)
        self.assertNotIn("FoldConstant", watch.seen)
        watch = Watch()
        with transform.PassContext(opt_level=4, instruments=[watch]):
            self.agrees(compile_alone())
        self.assertIn("CombineParallelDense", watch.seen)

    def test_settings_add_to_the_context(self):
        watch = Watch()
        with transform.PassContext(opt_level=1, instruments=[watch]):
            compile_alone(opt_level=2, disabled_pass="SimplifyExpr", config={"relay.FuseOps.max_depth": 3})
        self.assertIn("FoldConstant", watch.seen)
        self.assertNotIn("SimplifyExpr", watch.seen)
        with self.assertRaisesRegex(collage.InputError, "unknown pass 'FoldConstants'"):
            compile_alone(disabled_pass=["FoldConstants"])
        with self.assertRaisesRegex(collage.InputError, "unknown pass option 'relay.FuseOps.depth'"):
            compile_alone(config={"relay.FuseOps.depth": 3})
        with self.assertRaisesRegex(collage.InputError, "must be true or false"):
            compile_alone(config={"relay.PartitionGraph.bind_constants": 7})

    def test_programs_of_the_machine(self):
        for config in (SEARCH, {}):
            watch = Watch()
            with transform.PassContext(disabled_pass=["SimplifyInference"], instruments=[watch], config=config):
                made = relay.vm.compile(norm(), target="llvm", threads=1)
            np.testing.assert_allclose(relay.vm.VirtualMachine(made).run(self.x), self.expected, rtol=1e-5, atol=1e-6)
            self.assertIn("qnn.CanonicalizeOps", watch.seen)
            self.assertNotIn("SimplifyInference", watch.seen)

    def test_both_ways_of_a_branch(self):
        watch = Watch()
        program = collage.parse("""def @main(%x: Tensor[(2, 8), float32], %c: bool) {
          if (%c) { nn.relu(add(%x, %x)) } else { tanh(nn.dropout(%x).0) }
        }""")
        with transform.PassContext(instruments=[watch], config=SEARCH):
            made = relay.vm.compile(program, target="llvm", threads=1)
        self.assertIn("ToGraphNormalForm", watch.seen)
        self.assertIn("SimplifyInference", watch.seen)
        result = relay.vm.VirtualMachine(made).run(self.x, False)
        np.testing.assert_allclose(result, np.tanh(self.x), rtol=1e-5, atol=1e-6)

    def test_errors_of_instruments_arrive(self):
        class Broken:
            def before(self, pass_, module):
                raise LookupError(pass_.name)

        path = in_folder("never.clg")
        with transform.PassContext(instruments=[Broken()]), self.assertRaisesRegex(LookupError, "ToGraphNormalForm"):
            collage.compile(norm(), path, threads=1)
        self.assertFalse(os.path.exists(path))

    def test_a_pass_that_no_compilation_runs(self):
        with transform.PassContext(required_pass=["FuseOps"]), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compile_alone()
        self.assertIn("no compilation runs them: FuseOps", " ".join(str(one.message) for one in caught))


if __name__ == "__main__":
    unittest.main()
