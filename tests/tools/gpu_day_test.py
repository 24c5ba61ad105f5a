"""tools/gpu_day: its list of assumptions, models without weights, and a day with a GPU that a stand-in plays."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from made_up_tree import SOURCE

sys.path.insert(0, str(SOURCE / "tools"))

import numpy as np
import onnx

from gpu_days import assumptions, report, weights

BUILD = Path(os.environ.get("COLLAGE_BUILD", SOURCE / "build/dev"))
MODEL = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models")) / "small/mnist.onnx"


class Assumptions(unittest.TestCase):
    def test_each_has_its_test(self) -> None:
        known = [assumptions.Assumption("driver", "copies are done in order", "unit.backends.DriverTest.Order.gpu")]
        self.assertEqual(assumptions.problems(known, {"unit.backends.DriverTest.Order.gpu"}), [])
        self.assertEqual(
            assumptions.problems(known, {"unit.backends.DriverTest.Order"}),
            ["'copies are done in order' is shown by unit.backends.DriverTest.Order.gpu, which is no test"],
        )
        tests = {"unit.backends.DriverTest.Order.gpu", "unit.backends.DriverTest.New.gpu"}
        self.assertEqual(
            assumptions.problems(known, tests), ["unit.backends.DriverTest.New.gpu is in no row of gpus.md"]
        )
        self.assertEqual(assumptions.problems([], set()), ["the list is empty"])


class Report(unittest.TestCase):
    def test_what_was_not_done_is_said(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            report.Findings("The machine", ["what", "is"], [["GPU", "a | b"]], "slow", 2).save(folder / "machine.json")
            text = report.write(folder, ["machine", "models"], "A day").read_text()
        self.assertIn("| GPU | a \\| b |", text)
        self.assertIn("2 s. slow", text)
        self.assertIn("Not done: models.", text)


class Weights(unittest.TestCase):
    def test_those_that_are_drawn_are_like_those_that_were(self) -> None:
        values = np.linspace(1, 3, 2000, dtype=np.float32).reshape(20, 100)
        given = onnx.numpy_helper.from_array(values, "w")
        small = onnx.numpy_helper.from_array(np.ones(100, np.float32), "b")
        nodes = [onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
        ports = [onnx.helper.make_tensor_value_info(one, 1, shape) for one, shape in (("x", [4, 20]), ("y", [4, 100]))]
        graph = onnx.helper.make_graph(nodes, "m", ports[:1], ports[1:], [given, small])
        with tempfile.TemporaryDirectory() as name:
            onnx.save(onnx.helper.make_model(graph), Path(name) / "m.onnx")
            folder = Path(name) / "out"
            folder.mkdir()
            weights.take_out(Path(name) / "m.onnx", folder)
            self.assertLess((folder / "m.onnx").stat().st_size, values.nbytes)
            weights.draw(folder / "m.onnx")
            drawn, kept = (onnx.numpy_helper.to_array(one) for one in onnx.load(folder / "m.onnx").graph.initializer)
        self.assertEqual(drawn.shape, values.shape)
        self.assertLess(abs(drawn.mean() - 2), 0.1)
        self.assertGreaterEqual(drawn.min(), 1)
        np.testing.assert_array_equal(kept, np.ones(100, np.float32))


class Day(unittest.TestCase):
    def tool(self, *words: object, code: int = 0) -> str:
        environment = os.environ | {"XZ_OPT": "-0", "COLLAGE_LIBRARY_PATH": str(BUILD / "tests/standins")}
        command = [sys.executable, "-B", str(SOURCE / "tools/gpu_day"), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_on_a_stand_in(self) -> None:
        if not MODEL.exists():
            self.skipTest(f"{MODEL} is not there; run tools/models/prepare-tests")
        if not (BUILD / "lib/portable/libcollage_native_compiler.so").exists():
            self.skipTest("this build has no MLIR, or not its static libraries")
        with tempfile.TemporaryDirectory() as name:
            day = Path(name) / "day"
            self.tool("prepare", day, MODEL, "--pack", MODEL, "--arch", "emulated", "--build", BUILD, "--mib", 200)
            self.assertIn("there is no step 'x'", self.tool("run", day, "--steps", "x", code=1))
            self.tool("run", day, "--minutes", 0.5, "--steps", "machine,assumptions")
            found = json.loads((day / "assumptions.json").read_text())
            verdicts = {row[2] for row in found["rows"]}
            self.assertIn("confirmed", verdicts)
            self.assertNotIn("refuted", verdicts, found["rows"])
            self.assertNotIn("no such test", verdicts, found["rows"])
            # The rest, hardly begun when the time is over: each step says what it has.
            self.tool("run", day, "--minutes", 0.3)
            page = (day / "report.md").read_text()
            self.assertNotIn("Not done", page)
            self.assertNotIn("It failed", page)
            self.assertIn("cuda", page)
            self.tool("run", day)  # nothing is left to do


if __name__ == "__main__":
    unittest.main()
