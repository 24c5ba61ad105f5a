"""Costs by name and from Python in `collage.compile`."""

import json
import math
import traceback
import unittest

import numpy as np

import collage
from collage import relay
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401


def network(size=8):
    x = relay.var("x", shape=(1, size))
    return relay.Function([x], relay.exp(relay.tanh(relay.nn.relu(x))))


def operators_of(mod):
    calls = (node for node in mod.main.post_order() if isinstance(node, relay.Call))
    return [call.op.name for call in calls if isinstance(call.op, relay.Op)]


def compile(estimator, **options):
    return collage.compile(network(), threads=1, toolchains=["native"], estimator=estimator, **options)


def least(report):
    """The contender of the least sum of costs; those that no search found have none."""
    return min(
        (one for one in report["play_off"] if one["estimated_seconds"] > 0), key=lambda one: one["estimated_seconds"]
    )


class BuiltIn(unittest.TestCase):
    def test_are_listed(self):
        self.assertIn("mock=FILE.json", collage.estimators())
        with self.assertRaises(collage.InputError) as caught:
            compile("luck")
        self.assertEqual(caught.exception.message, "there is no estimator 'luck'")
        for usage in collage.estimators():
            self.assertIn(usage, caught.exception.hint)

    def test_a_table_decides(self):
        path = in_folder("costs.json")
        for costs, partitions in [({"op_cost": {"native": {"tanh": "unknown"}}}, None), ({"fusion_benefit": 0.5}, 1),
                                  ({"fusion_benefit": 2}, 3)]:  # fmt: skip
            with open(path, "w") as file:
                json.dump(costs, file)
            report = compile(f"mock={path}").report
            self.assertEqual(report["search"]["measured"], 0)
            if partitions is not None:
                self.assertEqual(least(report)["partitions"], {"native": partitions})

    def test_the_database_alone_says_what_it_lacks(self):
        database = in_folder("alone.db")
        with self.assertRaisesRegex(collage.UnavailableError, r"not in the tuning database: native: .*\[p:p\]"):
            compile("database", database=database)
        measured = compile("measure", database=database)
        known = compile("database", database=database)
        self.assertEqual(known.report["winner"], measured.report["winner"])
        self.assertEqual([one.operators for one in known.partitions], [one.operators for one in measured.partitions])
        self.assertEqual(known.report["search"]["measured"], 0)


class CustomEstimates(unittest.TestCase):
    def test_an_object_decides_the_cover(self):
        class ByOperators:
            def __init__(self, seconds):
                self.seconds = seconds
                self.asked = []

            def estimate(self, mod, target):
                self.asked.append((tuple(operators_of(mod)), str(target)))
                return self.seconds(operators_of(mod))

        apart = ByOperators(lambda operators: 1e-6 * 4 ** len(operators))
        report = compile(apart).report
        self.assertEqual(least(report)["partitions"], {"native": 3})
        self.assertAlmostEqual(least(report)["estimated_seconds"], 12e-6, delta=1e-6)
        self.assertEqual(report["search"]["measured"], 0)
        self.assertEqual(len(apart.asked), len(set(apart.asked)))
        self.assertIn((("nn.relu",), "llvm"), apart.asked)

        together = ByOperators(lambda operators: 1e-6)
        self.assertEqual(least(compile(together).report)["partitions"], {"native": 1})

    def test_the_result_is_right_whatever_it_says(self):
        exe = compile(lambda mod, target: math.nan)
        x = np.linspace(-1, 1, 8, dtype="float32").reshape(1, 8)
        np.testing.assert_allclose(exe(x), np.exp(np.tanh(np.maximum(x, 0))), rtol=1e-5)

    def test_infinite_costs_leave_no_cover(self):
        with self.assertRaisesRegex(collage.UnsupportedError, "the estimator says that it cannot be run"):
            compile(lambda mod, target: math.inf)

    def test_by_name(self):
        made = []

        def make():
            made.append(True)
            return lambda mod, target: 1e-6

        collage.register_estimator("mine", make)
        compile("mine")
        compile("mine")
        self.assertEqual(len(made), 2)
        with self.assertRaisesRegex(collage.InputError, "there are: .*, mine"):
            compile("mime")
        with self.assertRaisesRegex(collage.InputError, "built in"):
            collage.register_estimator("mock=mine", make)

    def test_what_it_raises_arrives_with_its_traceback(self):
        def broken(mod, target):
            raise ZeroDivisionError("mine")

        frames = []
        try:
            compile(broken)
        except ZeroDivisionError as error:
            frames = traceback.extract_tb(error.__traceback__)
        self.assertIn("broken", [frame.name for frame in frames])
        with self.assertRaisesRegex(collage.InputError, "not negative"):
            compile(lambda mod, target: -1.0)
        with self.assertRaises((TypeError, RuntimeError)):
            compile(lambda mod, target: "much")

    def test_of_a_program(self):
        mod = collage.parse("""def @main(%n: int64, %x: Tensor[(64), float32]) -> Tensor[(64), float32] {
          if (less(%n, 2i64)) { exp(tanh(%x)) } else { tanh(exp(%x)) }
        }""")
        asked = []

        def estimate(mod, target):
            asked.append(operators_of(mod))
            return 1e-6

        with collage.transform.PassContext(config={"relay.collage.enable_collage": True}):
            exe = relay.vm.compile(mod, target="llvm", threads=1, estimator=estimate)
        self.assertIn(["tanh", "exp"], asked)
        x = np.ones(64, "float32")
        np.testing.assert_allclose(relay.vm.VirtualMachine(exe).run(1, x), np.exp(np.tanh(x)), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
