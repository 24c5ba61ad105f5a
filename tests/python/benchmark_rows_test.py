"""The programs that print a row for each of many models (benchmarks/): which models, and that a stopped run goes on."""

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(os.environ["COLLAGE_SOURCE"]) / "benchmarks"))
import collage
import direct_use
import whole_models


class BenchmarkRowsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ["full/resnet50", "small/resnet50", "small/bert", "small/bert_int8"]:
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / f"{name}.onnx").write_bytes(b"model")
        self.enterContext(mock.patch.dict(os.environ, {"COLLAGE_MODELS": str(self.folder)}))

    def print_rows(self, make_row, models, variants=None, **more):
        arguments = argparse.Namespace(models=models, out=None, **more)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = whole_models.print_rows("program", "header", make_row, arguments, variants)
        return status, out.getvalue().splitlines(), err.getvalue()

    def test_models_are_named_by_pattern_and_folder(self) -> None:
        small = ["small/bert", "small/bert_int8", "small/resnet50"]
        self.assertEqual(whole_models.find_models(["small"]), small)
        self.assertEqual(whole_models.find_models(["small/"]), small)
        both = ["full/resnet50", "small/resnet50", "small/bert_int8"]
        self.assertEqual(whole_models.find_models(["*/resnet50", "small/*_int8"]), both)
        self.assertEqual(whole_models.find_models(["small/bert", "small/b*"]), ["small/bert", "small/bert_int8"])
        self.assertEqual(whole_models.find_models(["/elsewhere/x.onnx"]), ["/elsewhere/x.onnx"])
        with self.assertRaisesRegex(RuntimeError, "is called 'small/gpt"):
            whole_models.find_models(["small/gpt*"])

    def test_failures_are_told_and_the_rest_goes_on(self) -> None:
        def row(name, arguments, folder):
            if name == "small/bert":
                raise whole_models.NotComparable("not taken")
            return f"| {name} |"

        status, lines, errors = self.print_rows(row, ["small"])
        self.assertEqual((status, lines), (0, ["header", "| small/bert_int8 |", "| small/resnet50 |"]))
        self.assertEqual(errors, "program: small/bert: not taken\n")

        def broken(name, variant, arguments, folder):
            raise RuntimeError(f"no {variant}")

        status, lines, errors = self.print_rows(broken, ["full"], variants=["a", "b"])
        self.assertEqual((status, lines), (1, ["header"]))
        self.assertIn("2 without a row:\nprogram: full/resnet50 a: no a\nprogram: full/resnet50 b: no b\n", errors)

    def test_the_mean_is_to_the_faster_engine(self) -> None:
        def line(name, openvino, onnxruntime):
            times = f"1.000 ms | native 1.000 ms | 1.000 | {openvino} | {onnxruntime}"
            return f"| {name} | 1 | native 1 | {times} | 0.0e+00 | 9 s | 1 s |"

        lines = [line("a", "0.500", "0.400"), line("b", "none", "0.320"), line("c", "none", "none")]
        mean = whole_models.engines_mean(lines)
        self.assertEqual(mean, "\nTo the faster engine: geometric mean 0.400 over 2 models, at most 0.500 (a)")
        self.assertIn("No engine", whole_models.engines_mean(lines[2:]))

    def test_finished_rows_are_kept_under_their_settings(self) -> None:
        made = []

        def row(name, arguments, folder):
            rows = whole_models.KeptRows(arguments, ["times"], self.folder / f"{name}.onnx")
            kept = rows.find(name.replace("/", "_"))
            if kept is None:
                made.append(name)
            return kept or rows.keep(name.replace("/", "_"), f"| {name} | {arguments.times} |")

        keep = tempfile.mkdtemp(dir=self.folder)
        for times, expected in [(1, 3), (1, 3), (2, 6)]:
            _, lines, _ = self.print_rows(row, ["small"], keep=keep, times=times)
            self.assertEqual(lines[1], f"| small/bert | {times} |")
            self.assertEqual(len(made), expected)
        (self.folder / "small/bert.onnx").write_bytes(b"another")
        self.print_rows(row, ["small"], keep=keep, times=2)
        self.assertEqual(made[6:], ["small/bert"])
        self.print_rows(row, ["small/bert"], keep=None, times=2)
        self.assertEqual(len(made), 8)

    def test_what_is_not_taken_whole_is_not_comparable(self) -> None:
        answer = """{"calls": 3, "outside": 0, "toolchains": [{"operators": [
          {"name": "nn.relu", "calls": 2, "refused": []},
          {"name": "cumprod", "calls": 1, "refused": [{"calls": 1, "reason": "no running products"}]}]}]}"""
        arguments = argparse.Namespace(toolchain="openvino", build="build")
        with mock.patch.object(direct_use, "run", return_value=answer):
            with self.assertRaisesRegex(whole_models.NotComparable, r"cumprod \(not 1 of 1: no running products\)"):
                direct_use.check_support("small/bert", arguments)
        whole = answer.replace('{"calls": 1, "reason": "no running products"}', "")
        with mock.patch.object(direct_use, "run", return_value=whole):
            direct_use.check_support("small/bert", arguments)


class DeploymentTest(unittest.TestCase):
    """benchmarks/deployment: a small model in all contenders, whose figures mean nothing here."""

    def test_each_contender_has_a_row(self) -> None:
        if not (whole_models.models_folder() / "small/mnist.npz").exists():
            self.skipTest("no models; run tools/models/prepare-tests")
        program = Path(os.environ["COLLAGE_SOURCE"]) / "benchmarks/deployment/deployment.py"
        build = Path(collage.__file__).resolve().parents[2]
        few = ["--processes", "1", "--runs", "5", "--budget", "1s"]
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"COLLAGE_DATABASE": f"{folder}/tuning.db"}
            command = [sys.executable, str(program), "small/mnist", "--build", str(build), *few]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stdout.splitlines()[2:]
        numbers = r"[\d.]+ MB \| [\d.]+ ms \| [\d.]+ ms \| [\d.]+ MB \| -?[\d.]+ MB \|$"
        for row, name in zip(rows, ("a program, by Collage", "Python, ONNX Runtime", "Python, OpenVINO"), strict=True):
            self.assertRegex(row, rf"^\| small/mnist \| {re.escape(name)}[ \d.]* \| {numbers}")


if __name__ == "__main__":
    unittest.main()
