"""Graphs of 5,000 nodes stay usable: many in few partitions, many in partitions of one node each, and nearly all in one."""

import unittest

import made_up
from browser import open_page, opened_browser, written

NUM_NODES = 5000
MOST_ELEMENTS = 4000  # of the picture in the document, whatever is in view


class LargeTest(unittest.TestCase):
    def check(self, most_nodes):
        explanation = made_up.explanation(NUM_NODES, most_nodes)
        graph = explanation["graphs"][0]
        with opened_browser() as browser, written(explanation) as file:
            page, problems = open_page(browser, file, reduced_motion="reduce")
            self.assertEqual(page.locator("#graph .node").count(), 0, "all is folded at first")
            self.assertIn(
                f"Graph of {len(graph['partitions'])} partitions", page.get_attribute("svg.graph", "aria-label")
            )
            self.search(page, f"node_{NUM_NODES - 7}", "1 node in 1 partition")
            self.assertEqual(page.text_content("#details h3"), graph["nodes"][NUM_NODES - 7]["name"])
            number = next(i for i, row in enumerate(graph["partitions"]) if NUM_NODES - 7 in row["nodes"])
            box = page.locator(f"#box-0-{number + 1}")
            box.locator(".toggle").dispatch_event("click")
            self.assertEqual(box.get_attribute("aria-expanded"), "true")
            self.assertEqual(box.locator(".node").count(), len(graph["partitions"][number]["nodes"]))
            page.keyboard.press("Escape")
            page.locator("#fold").click()
            for key in ("0", "+", "+", "+", "ArrowDown", "ArrowDown"):
                page.keyboard.press(key)
            self.assertLess(page.evaluate("document.querySelectorAll('svg.graph *').length"), MOST_ELEMENTS)
            self.assertEqual(problems.seen, [])

    def search(self, page, typed, found):
        page.keyboard.press("/")
        page.keyboard.type(typed)
        self.assertEqual(page.inner_text("#found"), found)
        page.keyboard.press("Enter")
        page.evaluate("document.activeElement.blur()")

    def test_partitions_of_a_few_nodes(self):
        self.check(12)

    def test_partitions_of_one_node(self):
        self.check(1)

    def test_nearly_all_nodes_in_few_partitions(self):
        self.check(NUM_NODES)


if __name__ == "__main__":
    unittest.main()
