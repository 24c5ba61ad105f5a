"""tools/test_report counts what failed and was skipped, gives the reasons, and fails over its budget."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from made_up_tree import SOURCE

RUN = """<testsuite>
<testcase name="unit.a" time="0.5" status="run"><system-out>x</system-out></testcase>
<testcase name="unit.b" time="1.5" status="notrun"><skipped message=""/><system-out>a.cc:3: Skipped
"/home/m/mnist.onnx" is not there; run tools/models/prepare-tests

[  SKIPPED ] B.b</system-out></testcase>
<testcase name="unit.c" time="0.1" status="notrun"><skipped message=""/><system-out>a.cc:3: Skipped
"/home/m/yolo.onnx" is not there; run tools/models/prepare-tests
</system-out></testcase>
<testcase name="cli.d" time="0" status="notrun"><skipped message=""/><system-out>skipped: no server</system-out></testcase>
</testsuite>"""
FAILED = '<testcase name="unit.e" time="0" status="fail"><failure/><system-out/></testcase></testsuite>'


class TestReport(unittest.TestCase):
    def report(self, xml: str, *arguments: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tests.xml"
            path.write_text(xml)
            done = subprocess.run(
                [SOURCE / "tools/test_report", path, *arguments], capture_output=True, text=True, check=False
            )
        return done.returncode, done.stdout + done.stderr

    def test_skips_are_counted_by_reason(self) -> None:
        code, output = self.report(RUN)
        self.assertEqual(code, 0, output)
        self.assertIn("4 tests: 1 passed, 0 failed, 3 skipped", output)
        self.assertIn("2  a file is not there; run tools/models/prepare-tests  (unit.b and 1 more)", output)
        self.assertIn("1  no server  (cli.d)", output)
        self.assertIn("they took 2.1 s", output)

    def test_failures_are_named(self) -> None:
        code, output = self.report(RUN.replace("</testsuite>", FAILED))
        self.assertEqual(code, 1, output)
        self.assertIn("failed: unit.e", output)

    def test_a_budget_is_kept(self) -> None:
        self.assertEqual(self.report(RUN, "--budget", "3")[0], 0)
        code, output = self.report(RUN, "--budget", "2")
        self.assertEqual(code, 1, output)
        self.assertIn("over the budget of 2 s", output)

    def test_what_is_no_result_is_an_error(self) -> None:
        self.assertEqual(self.report("no XML")[0], 2)


if __name__ == "__main__":
    unittest.main()
