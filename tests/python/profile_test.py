"""Profiles of executables."""

import unittest

import numpy as np

import collage
from collage import relay, reports
from own_folder import setUpModule, tearDownModule  # noqa: F401
from reports_test import differences

QUICK = {"seconds": 0.05, "counters": False, "cold": False, "roof": False}


def compiled(function):
    return collage.compile(function, threads=1, toolchains=["native"], partition_for="native")


class Profile(unittest.TestCase):
    def test_a_plan(self):
        x, w = relay.var("x", shape=(16, 32)), relay.var("w", shape=(8, 32))
        exe = compiled(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
        report = exe.profile({"x": np.zeros((16, 32), np.float32), "w": np.zeros((8, 32), np.float32)}, seconds=0.1)
        self.assertEqual(differences(report, reports.ProfileReport), [])
        self.assertAlmostEqual(sum(step["share"] for step in report["steps"]), 1, places=6)
        self.assertEqual(sum(step["flops"] or 0 for step in report["steps"]), 2 * 16 * 8 * 32)
        self.assertIsNone(report["load_seconds"], "it was loaded before")
        self.assertEqual(exe.profile(**QUICK)["roof"], None)

    def test_a_program_of_dynamic_shapes(self):
        x = relay.var("x", shape=(None, 32))
        exe = compiled(relay.Function([x], relay.nn.relu(relay.exp(x))))
        report = exe.profile([np.zeros((5, 32), np.float32)], **QUICK)
        self.assertEqual(differences(report, reports.ProfileReport), [])
        self.assertEqual([(s["kind"], s["bytes"]) for s in report["steps"]], [("any size", 2 * 5 * 32 * 4)])
        self.assertEqual(exe.profile(sizes={"x[0]": 7}, **QUICK)["steps"][0]["bytes"], 2 * 7 * 32 * 4)
        with self.assertRaisesRegex(collage.InputError, "of dynamic shape"):
            exe.profile(**QUICK)

    def test_inputs_that_do_not_fit(self):
        x = relay.var("x", shape=(4, 8))
        exe = compiled(relay.Function([x], relay.exp(x)))
        with self.assertRaisesRegex(collage.InputError, "there is no input 'z'"):
            exe.profile({"z": np.zeros((4, 8), np.float32)}, **QUICK)
        with self.assertRaisesRegex(collage.InputError, r"wants float32 \(4, 8\)"):
            exe.profile([np.zeros((4, 9), np.float32)], **QUICK)
        with self.assertRaisesRegex(collage.InputError, "no dynamic dimensions"):
            exe.profile(sizes={"x[0]": 3}, **QUICK)


if __name__ == "__main__":
    unittest.main()
