"""The report's page: its sections, its numbers, its themes and its keys, on an explanation that is made up."""

import re
import unittest
from contextlib import ExitStack

import made_up
from browser import open_page, opened_browser, written
from texts import number, operators, seconds, share

EXPLANATION = made_up.explanation(400, 6)
OTHER = made_up.explanation(400, 6, seed=1)
PROFILE = made_up.profile(EXPLANATION)
GRAPH = EXPLANATION["graphs"][0]
PARTITIONS = GRAPH["partitions"]


def toolchain(partition):
    return made_up.TOOLCHAINS[GRAPH["candidates"][partition["candidate"]]["toolchain"]]


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.browser = cls.stack.enter_context(opened_browser())
        cls.file = cls.stack.enter_context(written(EXPLANATION, other=OTHER, profile=PROFILE))

    def open(self, **options):
        page, self.problems = open_page(self.browser, self.file, **options)
        self.addCleanup(page.context.close)
        self.addCleanup(lambda: self.assertEqual(self.problems.seen, []))
        return page

    def rows(self, page, selector):
        """The texts of a table's cells."""
        return page.eval_on_selector_all(
            f"{selector} tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
        )

    def numbers_of(self, page, chart):
        """The rows of a chart's table, which it makes when it is opened."""
        page.locator(f"#{chart} .numbers summary").click()
        page.wait_for_selector(f"#{chart} .numbers tbody")
        return self.rows(page, f"#{chart} .numbers")

    def test_all_sections_are_there_and_their_links_lead_to_them(self):
        page = self.open()
        links = page.eval_on_selector_all("nav a", "links => links.map(link => [link.hidden, link.hash.slice(1)])")
        sections = page.eval_on_selector_all("section", "all => all.map(section => section.id)")
        self.assertEqual([name for hidden, name in links if not hidden], sections)
        self.assertEqual(
            sections, ["overview", "contenders", "graph", "time", "charts", "partitions", "comparison", "made"]
        )

    def test_it_needs_no_network_and_says_so(self):
        page = self.open()
        policy = page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
        self.assertTrue(policy.startswith("default-src 'none'"))
        self.assertNotRegex(self.file.read_text(), r"""(?:src|href)=["']?https?:""")

    def test_the_verdict_is_the_reports(self):
        page = self.open()
        self.assertEqual(page.inner_text("#p50"), seconds(EXPLANATION["report"]["p50_seconds"]))
        lead = page.inner_text(".lead")
        self.assertIn("Collage's mix of 5 toolchains won", lead)
        for contender in EXPLANATION["report"]["play_off"]:
            if contender["single"] and not contender["failure"]:
                self.assertIn(f"{contender['to_winner']:.2f}× as fast as {contender['name']} alone", lead)
        self.assertIn("3.0 %", page.inner_text("#certificate"))
        self.assertIn("410 kB", page.inner_text("#file"))

    def test_the_play_off_has_a_dot_and_a_row_for_each_contender_that_ran(self):
        page = self.open()
        ran = [row for row in EXPLANATION["report"]["play_off"] if not row["failure"]]
        self.assertEqual(page.locator("#play-off .row circle").count(), len(ran))
        shown = self.numbers_of(page, "play-off")
        fields = ("p50_seconds", "min_seconds", "p90_seconds")
        self.assertEqual([row[1:4] for row in shown], [[seconds(row[field]) for field in fields] for row in ran])
        places = page.eval_on_selector_all(
            "#play-off .row circle", "all => all.map(dot => Number(dot.getAttribute('cx')))"
        )
        self.assertEqual(places, sorted(places), "they are from fast to slow")
        self.assertIn("1 could not take part", page.inner_text("#contenders"))

    def test_every_partition_has_a_row_with_the_numbers_of_the_json(self):
        page = self.open()
        shown = self.rows(page, "table.partitions")
        self.assertEqual(
            [row[:8] for row in shown],
            [
                [str(i), toolchain(row), operators(row["operators"]), row["first_node"], str(len(row["nodes"])),
                 seconds(row["seconds"]), seconds(PROFILE["steps"][i]["p50_seconds"]), share(row["share"])]
                for i, row in enumerate(PARTITIONS)
            ],
        )  # fmt: skip
        end = sum((row["seconds"] or 0) + row["transition_seconds"] + row["conversion_seconds"] for row in PARTITIONS)
        self.assertEqual(shown[-1][8], seconds(end))
        self.assertEqual([shown[-1][5], shown[-1][7]], ["?", "?"], "what is not known is not 0")

    def test_the_table_is_sorted_and_filtered(self):
        page = self.open()
        page.click("table.partitions th:nth-child(6) button")
        costs = [row[5] for row in self.rows(page, "table.partitions")]
        self.assertEqual(costs[0], seconds(max(row["seconds"] or 0 for row in PARTITIONS)))
        self.assertEqual(page.get_attribute("table.partitions th:nth-child(6)", "aria-sort"), "descending")
        page.fill("#filter", "dnnl conv2d")
        left = [row for row in PARTITIONS if toolchain(row) == "dnnl" and "conv2d" in row["operators"]]
        self.assertEqual(page.locator("table.partitions tbody tr").count(), len(left))
        page.fill("#filter", "none of them")
        self.assertIn("No partition matches", page.inner_text("#partitions"))

    def test_charts_have_the_sums_of_the_json(self):
        page = self.open()
        sums = {}
        for row in PARTITIONS:
            sums[toolchain(row)] = sums.get(toolchain(row), 0) + (row["seconds"] or 0)
        shown = {row[0]: row[1] for row in self.numbers_of(page, "by-toolchain")}
        self.assertEqual(
            {name: seconds(value) for name, value in sums.items()}, {k: v for k, v in shown.items() if k in sums}
        )
        self.assertIn("between partitions", shown)
        points = [row for row in PARTITIONS if row["seconds"] and GRAPH["costs"][2 * row["kernel"]]["multiply_adds"]]
        self.assertEqual(page.locator("#roofline circle").count(), len(points))
        self.assertEqual(page.locator("#bandwidth circle").count(), len(PARTITIONS) - 1 - len(points))
        self.assertEqual(
            [row[2] for row in self.numbers_of(page, "progress")],
            [seconds(row["best_seconds"]) for row in GRAPH["progress"]],
        )
        self.assertEqual(self.numbers_of(page, "gap")[-1][4], "3.0 %")

    def test_a_profile_adds_threads_limits_and_memory(self):
        page = self.open()
        kinds = page.eval_on_selector_all("#run .mark", "all => all.map(mark => mark.classList[1])")
        between = sum(1 for row in PARTITIONS if row["transition_seconds"] + row["conversion_seconds"] > 0)
        self.assertEqual({kind: kinds.count(kind) for kind in sorted(set(kinds))}, {
            "between": between, "partition": 2 * len(PARTITIONS) - 1, "region": 2 * len(PARTITIONS),
        })  # fmt: skip
        self.assertEqual(page.locator("#run .label").all_text_contents(), ["by cost", "thread 0", "thread 1"])
        self.assertEqual(page.locator("#accuracy circle").count(), len(PARTITIONS) - 1)
        self.assertIn("float32 arithmetic 220 GFLOP/s", page.locator("#roofline").text_content())
        self.assertEqual(page.locator("#arena-0 rect.value").count(), len(PARTITIONS))
        text = page.inner_text("#real-runs")
        for expected in (seconds(PROFILE["seconds"]["p50"]), "31.0 MB", "perf_event_open is not permitted"):
            self.assertIn(expected, text)

    def test_no_two_elements_have_one_id(self):
        page = self.open()
        ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
        self.assertEqual(sorted(ids), sorted(set(ids)))

    def test_labels_of_axes_rise(self):
        page = self.open()
        for axis in ("play-off", "run", "by-toolchain", "accuracy"):
            labels = page.locator(f"#{axis} .axis").first.locator(".tick text").all_text_contents()
            values = [number(label) if label != "0" else 0.0 for label in labels]
            self.assertGreater(len(values), 1, axis)
            self.assertEqual(values, sorted(set(values)), (axis, labels))

    def test_every_chart_has_words_and_a_table(self):
        page = self.open()
        charts = page.locator("figure.chart:has(.canvas)")
        for i in range(charts.count()):
            chart = charts.nth(i)
            self.assertRegex(chart.locator(".canvas svg").get_attribute("aria-label"), r"\w{3}", i)
            chart.locator(".numbers summary").click()
            chart.locator(".numbers tbody tr").first.wait_for()

    def test_every_control_has_a_name(self):
        page = self.open()
        page.keyboard.press("]")
        nameless = page.eval_on_selector_all(
            "button, input, select, [role=button]",
            "all => all.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)",
        )
        self.assertEqual(nameless, [])
        landmarks = page.eval_on_selector_all("header, nav, main, aside", "all => all.map(e => e.localName)")
        self.assertEqual(landmarks, ["header", "nav", "main", "aside"])

    def test_names_of_a_model_are_never_markup(self):
        page = self.open()
        self.assertEqual(page.title(), "made-up.onnx: Collage report")
        page.fill("#search", "</script>")
        self.assertEqual(page.inner_text("#found"), "1 node in 1 partition")
        page.keyboard.press("Enter")
        self.assertEqual(page.text_content("#details h3"), made_up.EVIL)
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("[")
        page.locator("tr[data-partition='0']").click()
        self.assertIn("declined </script><script>", page.inner_text("#details"))
        self.assertEqual(page.locator("#details b").count(), 0)

    def test_the_comparison_adds_up(self):
        page = self.open()
        text = page.inner_text("#comparison")
        self.assertIn(seconds(OTHER["report"]["p50_seconds"]), text)
        found = re.search(r"(\d+) parts computed otherwise", text, re.IGNORECASE)
        self.assertGreater(int(found[1]), 5)
        for row in self.rows(page, "#changed"):
            if "?" not in (row[2], row[4]):
                difference = number(row[5].replace("−", "-").replace("+", "")) if row[5] != "0" else 0.0
                self.assertAlmostEqual(difference, number(row[4]) - number(row[2]), delta=2e-5)

    def test_themes(self):
        page = self.open(color_scheme="dark")
        background = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(background)
        page.click("#theme")  # light, whatever the system has
        light = page.evaluate(background)
        page.click("#theme")
        self.assertEqual([page.evaluate(background), page.inner_text("#theme")], [dark, "☾ Dark"])
        self.assertNotEqual(light, dark)
        page.click("#theme")
        page.emulate_media(color_scheme="light")
        self.assertEqual(page.evaluate(background), light)

    def test_keys(self):
        page = self.open()
        page.keyboard.press("?")
        self.assertTrue(page.locator("#shortcuts").is_visible())
        page.keyboard.press("Escape")
        self.assertFalse(page.locator("#shortcuts").is_visible())
        page.keyboard.press("]")
        page.keyboard.press("]")
        self.assertIn("Partition 1:", page.inner_text("#details h3"))
        self.assertEqual(page.get_attribute("table.partitions tr.selected", "data-partition"), "1")
        page.keyboard.press("[")
        self.assertIn("Partition 0:", page.inner_text("#details h3"))
        page.keyboard.press("Escape")
        self.assertFalse(page.locator("#details").is_visible())
        page.keyboard.press("/")
        page.keyboard.type("]")
        self.assertEqual(page.input_value("#search"), "]", "letters that are typed are no shortcuts")
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        self.assertEqual(page.inner_text("#theme"), "☀ Light")

    def test_paper_has_no_buttons(self):
        page = self.open()
        page.emulate_media(media="print")
        for hidden in ("header", ".tools", ".minimap"):
            self.assertFalse(page.locator(hidden).first.is_visible(), hidden)
        self.assertTrue(page.locator("#play-off svg").is_visible())


if __name__ == "__main__":
    unittest.main()
