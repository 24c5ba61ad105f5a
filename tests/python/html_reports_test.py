"""`Executable.report_html` writes the page whose JSON is the explanation; it needs no browser to be checked for that."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import collage
from collage import relay
from own_folder import setUpModule, tearDownModule  # noqa: F401


def small(width):
    x = relay.var("x", shape=(2, 8))
    y = relay.nn.relu(relay.nn.dense(x, relay.const(np.ones((width, 8), "float32"))))
    return relay.Function([x], relay.nn.softmax(y))


def island(page, name):
    found = re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1]) if found else None


class HtmlReports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exe = collage.compile(small(4), threads=1, toolchains=["native"])

    def written(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.html"
            self.exe.report_html(file, **options)
            return file.read_text()

    def test_the_page_holds_the_explanation(self):
        page = self.written()
        self.assertEqual(island(page, "explanation"), self.exe.explain())
        layout = island(page, "layout")["graphs"][0]
        kinds = [item["kind"] for item in layout["items"]]
        self.assertEqual(kinds.count("partition"), len(self.exe.partitions))
        self.assertEqual((kinds.count("input"), kinds.count("output")), (1, 1))
        self.assertIsNone(island(page, "diff"))

    def test_two_executables_are_compared(self):
        other = collage.compile(small(4), threads=1, partition_for="native")
        diff = island(self.written(compare=other), "diff")
        self.assertEqual((diff["a"], diff["b"]), ("this", "other"))

    def test_a_profile_comes_along(self):
        profile = {"schema": 1, "steps": [], "timeline": []}
        self.assertEqual(island(self.written(profile=profile), "profile"), profile)
        with self.assertRaisesRegex(collage.InputError, "this is not the JSON of a profile"):
            self.written(profile={})

    def test_what_cannot_be_done_is_said(self):
        silent = collage.compile(small(5), threads=1, toolchains=["native"], explanation="none")
        with self.assertRaisesRegex(collage.InputError, "the executable has no explanation"):
            silent.report_html("absent.html")
        with self.assertRaises(collage.ResourceError):
            self.exe.report_html("/absent/report.html")


if __name__ == "__main__":
    unittest.main()
