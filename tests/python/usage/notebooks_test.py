"""HTML for notebooks is well-formed, names the object that it shows, and loads nothing from elsewhere."""

import unittest
from html.parser import HTMLParser

import numpy as np

import collage
from collage import _pictures, relay
from own_folder import setUpModule, tearDownModule  # noqa: F401

VOID = {"br", "meta"}


class Page(HTMLParser):
    """Tags in pairs, the attributes of each, and the text."""

    def __init__(self, test, html):
        super().__init__()
        self.test, self.open, self.tags, self.text = test, [], [], ""
        self.feed(html)
        test.assertEqual(self.open, [])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.test.assertEqual(self.open.pop(), tag)

    def handle_data(self, data):
        self.text += data + " "


def network():
    random = np.random.default_rng(0)
    x = relay.var("x<b>", shape=(1, 3, 16, 16))
    w = relay.const(random.standard_normal((8, 3, 3, 3)).astype("float32"))
    return relay.Function([x], relay.nn.softmax(relay.nn.relu(relay.nn.conv2d(x, w, padding=[1, 1])), axis=1))


class Notebooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exe = collage.compile(network(), threads=1, toolchains="native")

    def page(self, shown):
        html = shown._repr_html_()
        for outside in ("http", "src=", "href=", "<script", "url("):
            self.assertNotIn(outside, html)
        return Page(self, html)

    def test_an_executable(self):
        for exe in (self.exe, collage.load(self.exe.to_bytes())):
            page = self.page(exe)
            for part in ("model", "module", "median", "native", "% of the time", "x<b>: float32[1, 3, 16, 16]"):
                self.assertIn(part, page.text)
            bars = [attrs for tag, attrs in page.tags if tag == "rect"]
            self.assertGreaterEqual(len(bars), len(exe.partitions))
            self.assertLess(abs(sum(float(one["width"]) for one in bars) - 640), 5)
            self.assertIn("nn.conv2d", page.text)

    def test_an_executable_without_explanation(self):
        exe = collage.compile(network(), threads=1, toolchains="native", explanation="none")
        page = self.page(collage.load(exe.to_bytes()))
        self.assertIn("not measured", page.text)
        self.assertEqual(len([tag for tag, _ in page.tags if tag == "rect"]), len(exe.partitions))

    def test_a_program_of_which_nothing_was_searched(self):
        module = collage.parse("def @main(%x: Tensor[(?, 8), float32]) { nn.relu(%x) }")
        with self.assertWarnsRegex(UserWarning, "nothing was searched"):
            exe = collage.compile(module, threads=1, partition_for="native")
        page = self.page(exe)
        self.assertIn("not measured", page.text)
        self.assertRegex(page.text, "kernels for any size +native 1 ")
        self.assertNotIn("svg", [tag for tag, _ in page.tags])

    def test_costs_that_nobody_measured(self):
        pieces = [_pictures.Piece("native", "exp", [], None), _pictures.Piece("dnnl", "nn.conv2d", ["a"], 2e-6)]
        html = _pictures.of_executable("m", "() -> ()", 1, None, pieces, 0.0)
        page = Page(self, html)
        self.assertIn("1 of 2 partitions", page.text)
        self.assertIn("dnnl 100.0% of the time, 1 partition", page.text)
        html = _pictures.of_executable("m", "() -> ()", 1, None, pieces[:1], 0.0)
        self.assertIn("share of the time unknown", Page(self, html).text)

    def test_an_explanation(self):
        page = self.page(self.exe.explain())
        self.assertIn("% of the time", page.text)
        self.assertNotIn("signature", page.text)

    def test_reports(self):
        page = self.page(self.exe.report)
        for contender in self.exe.report["play_off"]:
            self.assertIn(contender["name"], page.text)
        page = self.page(self.exe.profile(seconds=0.05, counters=False, cold=False, roof=False))
        self.assertIn("nn.conv2d", page.text)
        page = self.page(collage.support(network(), "native, dnnl"))
        self.assertIn("3 of 3", page.text)

    def test_a_benchmark(self):
        page = self.page(self.exe.benchmark(0.02))
        for part in ("p50", "p90", "p99", "runs"):
            self.assertIn(part, page.text)
        self.assertIn("svg", [tag for tag, _ in page.tags])
        self.page(collage.BenchmarkSummary([1e-3]))
        self.page(collage.BenchmarkSummary([1e-3, 1e-3]))
        self.page(collage.BenchmarkSummary())

    def test_times(self):
        for seconds, text in [
            (0, "0.000 us"),
            (3.21e-8, "0.032 us"),
            (9.99e-4, "999 us"),
            (1, "1.00 s"),
            (75.1, "75.1 s"),
        ]:
            self.assertEqual(_pictures.time_text(seconds), text)


if __name__ == "__main__":
    unittest.main()
