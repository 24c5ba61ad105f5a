"""The picture of the graph: what is drawn of a layout, folding, search, selection, keys."""

import unittest
from contextlib import ExitStack

import made_up
from browser import open_page, opened_browser, written
from texts import operators, seconds, share

EXPLANATION = made_up.explanation(60, 5)
GRAPH = EXPLANATION["graphs"][0]
PARTITIONS = GRAPH["partitions"]
OF_NODE = {node: i for i, row in enumerate(PARTITIONS) for node in row["nodes"]}


class GraphTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.browser = cls.stack.enter_context(opened_browser())
        cls.file = cls.stack.enter_context(written(EXPLANATION))

    def setUp(self):
        self.page, self.problems = open_page(self.browser, self.file, reduced_motion="reduce")
        self.addCleanup(self.page.context.close)
        self.addCleanup(lambda: self.assertEqual(self.problems.seen, []))
        self.page.keyboard.press("g")
        self.page.keyboard.press("0")  # all in view, so that all is drawn

    def box(self, partition):
        """The box of a partition: the first item is the input."""
        return self.page.locator(f"#box-0-{partition + 1}")

    def toggle(self, partition):
        """Presses the sign that unfolds or folds."""
        self.page.evaluate(
            "id => document.querySelector(`#${id} .toggle`).dispatchEvent(new MouseEvent('click', {bubbles: true}))",
            f"box-0-{partition + 1}",
        )

    def test_every_partition_is_a_box_with_its_numbers(self):
        self.assertEqual(self.page.locator(".item.partition").count(), len(PARTITIONS))
        for i, row in enumerate(PARTITIONS):
            texts = self.box(i).locator("text").all_text_contents()
            self.assertTrue(texts[0].startswith(f"{i}  {operators(row['operators'])[:12]}"), texts)
            self.assertTrue(texts[1].endswith(f"{seconds(row['seconds'])} · {share(row['share'])}"), texts)

    def test_every_value_between_partitions_is_an_edge(self):
        expected = set()
        for node, row in enumerate(GRAPH["nodes"]):
            for read in row["inputs"]:
                if GRAPH["nodes"][read]["kind"] != "constant" and OF_NODE.get(read) != OF_NODE.get(node):
                    expected.add((OF_NODE.get(read, -1) + 1, OF_NODE[node] + 1))
        expected.add((OF_NODE[GRAPH["results"][0]] + 1, len(PARTITIONS) + 1))
        layout = self.page.evaluate("JSON.parse(document.getElementById('layout').textContent).graphs[0]")
        self.assertEqual({(edge["from"], edge["to"]) for edge in layout["edges"]}, expected)
        self.assertEqual(self.page.locator("#graph .edges path.edge").count(), len(expected))

    def test_edges_end_at_their_boxes(self):
        for unfolded in ((), (0, 3)):
            for partition in unfolded:
                self.toggle(partition)
            ends = self.page.evaluate("""() => {
              const box = (index) => document.querySelector(`[data-box="${index}"] > .box`).getBoundingClientRect();
              const layout = JSON.parse(document.getElementById("layout").textContent).graphs[0];
              return [...document.querySelectorAll("#graph path.edge[data-edge]")].map((path) => {
                const { from, to } = layout.edges[path.dataset.edge];
                const at = (length) => path.getPointAtLength(length).matrixTransform(path.getScreenCTM());
                return [at(0).y - box(from).bottom, box(to).top - at(path.getTotalLength()).y];
              });
            }""")
            for begin, end in ends:
                self.assertLess(max(abs(begin), abs(end)), 2)

    def test_boxes_do_not_overlap_however_many_are_unfolded(self):
        for unfold in (lambda: self.toggle(1), lambda: self.toggle(5), lambda: self.page.click("#unfold")):
            unfold()
            self.page.keyboard.press("0")
            boxes = self.page.eval_on_selector_all(
                ".item > .box",
                "all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])",
            )
            self.assertEqual(len(boxes), len(PARTITIONS) + 2)
            for i, a in enumerate(boxes):
                for b in boxes[i + 1 :]:
                    apart = a[0] >= b[2] - 0.5 or b[0] >= a[2] - 0.5 or a[1] >= b[3] - 0.5 or b[1] >= a[3] - 0.5
                    self.assertTrue(apart, (a, b))

    def test_an_unfolded_partition_shows_its_nodes(self):
        self.assertEqual(self.page.locator("#graph .node").count(), 0, "all is folded at first")
        number = max(range(len(PARTITIONS)), key=lambda i: len(PARTITIONS[i]["nodes"]))
        self.toggle(number)
        self.assertEqual(self.box(number).get_attribute("aria-expanded"), "true")
        shown = self.box(number).locator(".node").evaluate_all("all => all.map(e => Number(e.dataset.node))")
        self.assertEqual(sorted(shown), PARTITIONS[number]["nodes"])
        label = self.box(number).locator(".node").first.get_attribute("aria-label")
        node = GRAPH["nodes"][shown[0]]
        self.assertTrue(node["op"] in label and node["name"] in label and node["type"][0] in label, label)
        self.toggle(number)
        self.assertEqual(self.page.locator("#graph .node").count(), 0)
        self.page.click("#unfold")
        self.assertEqual(self.page.locator("#graph .node").count(), len(OF_NODE))
        self.page.click("#fold")
        self.assertEqual(self.page.locator("#graph .node").count(), 0)

    def test_unfolding_keeps_the_box_where_it_was(self):
        self.page.keyboard.press("c")
        before = self.box(2).locator(".box").bounding_box()
        self.toggle(2)
        after = self.box(2).locator(".box").bounding_box()
        self.assertAlmostEqual(before["y"], after["y"], delta=1)
        self.assertGreater(after["height"], before["height"])

    def test_search_finds_nodes_in_folded_partitions(self):
        self.page.keyboard.press("/")
        self.page.keyboard.type("conv2d native")
        found = [
            i
            for i, row in enumerate(GRAPH["nodes"])
            if row.get("op") == "nn.conv2d" and self.toolchain(OF_NODE[i]) == "native"
        ]
        partitions = {OF_NODE[i] for i in found}
        self.assertGreater(len(found), 1)
        self.assertEqual(
            self.page.inner_text("#found"),
            f"{len(found)} nodes in {len(partitions)} partition{'s' * (len(partitions) > 1)}",
        )
        marked = self.page.eval_on_selector_all(".item.match", "all => all.map(e => Number(e.dataset.box) - 1)")
        self.assertEqual(set(marked), partitions)
        self.page.keyboard.press("Enter")
        self.assertEqual(self.page.text_content("#details h3"), GRAPH["nodes"][found[0]]["name"])
        self.page.keyboard.press("Enter")
        self.assertEqual(self.page.inner_text("#found"), f"2 of {len(found)}")
        self.page.keyboard.press("Escape")
        self.assertEqual(self.page.locator(".item.match").count(), 0)
        self.page.fill("#search", "nothing like it")
        self.assertEqual(self.page.inner_text("#found"), "nothing found")

    def toolchain(self, partition):
        return made_up.TOOLCHAINS[GRAPH["candidates"][PARTITIONS[partition]["candidate"]]["toolchain"]]

    def test_details_of_a_partition_are_those_of_the_json(self):
        self.box(4).dispatch_event("click")
        row = PARTITIONS[4]
        cost = GRAPH["costs"][8]
        text = self.page.inner_text("#details")
        for expected in (f"Partition 4: {self.toolchain(4)}", f"{seconds(row['seconds'])} ± {seconds(cost['half_width'])}",
                         share(row["share"]), "channels_last → plain, 1.00 µs", "plain → plain"):  # fmt: skip
            self.assertIn(expected, text)
        way = row["alternatives"][0]
        self.assertIn(
            f"+{seconds(way['extra_seconds'])} (+{seconds(way['low_seconds'])} to +{seconds(way['high_seconds'])})",
            text,
        )
        self.assertIn("slower", text)
        for node in row["nodes"]:
            self.assertIn(GRAPH["nodes"][node]["name"], text)

    def test_details_of_a_node_list_the_candidates_that_hold_it(self):
        self.toggle(4)
        node = PARTITIONS[4]["nodes"][0]
        self.page.locator(f"[data-node='{node}']").dispatch_event("click")
        text = self.page.inner_text("#details")
        self.assertIn("2 CANDIDATES WITH THIS NODE", text.upper())
        for cost in GRAPH["costs"][8:10]:
            self.assertIn(seconds(cost["seconds"]), text)
        self.assertIn(f"partition 4 by {self.toolchain(4)}", text)
        self.assertIn("axis", text)
        self.page.get_by_role("button", name=GRAPH["nodes"][node - 1]["name"], exact=True).first.click()
        self.assertEqual(self.page.text_content("#details h3"), GRAPH["nodes"][node - 1]["name"])

    def test_colours_may_be_of_shares_in_place_of_toolchains(self):
        def colour(partition):
            return self.box(partition).locator(".bar, .stripe").first.evaluate("e => getComputedStyle(e).fill")

        by_toolchain = [colour(i) for i in range(len(PARTITIONS))]
        self.assertEqual(len(set(by_toolchain)), len({self.toolchain(i) for i in range(len(PARTITIONS))}))
        self.page.select_option("#colouring", label="Share of the time")
        by_share = [colour(i) for i in range(len(PARTITIONS))]
        self.assertEqual(len(set(by_share)), len(PARTITIONS))
        self.assertIn(share(max(row["share"] or 0 for row in PARTITIONS)), self.page.inner_text("#graph"))
        self.page.select_option("#colouring", label="Toolchain")
        self.assertEqual([colour(i) for i in range(len(PARTITIONS))], by_toolchain)

    def test_details_of_a_node_say_what_its_weights_are_like(self):
        self.toggle(0)
        self.page.locator("[data-node='1']").dispatch_event("click")
        text = self.page.inner_text("#details")
        self.assertIn("weights, 256 B", text)
        self.assertIn("−0.422 to 0.5, mean 0.00321, standard deviation 0.06, 12.5 % zeros", text)

    def test_the_keyboard_goes_everywhere(self):
        self.page.keyboard.press("ArrowDown")
        self.assertIn("Partition 0:", self.page.inner_text("#details h3"))
        self.page.keyboard.press("ArrowDown")
        self.assertIn("Partition 1:", self.page.inner_text("#details h3"))
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "box-0-2")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.box(1).get_attribute("aria-expanded"), "true")
        self.assertEqual(self.page.inner_text("#status"), "Partition 1 unfolded")
        self.page.keyboard.press("Enter")
        self.assertEqual(self.box(1).get_attribute("aria-expanded"), "false")
        focusable = self.page.locator("#graph .item[tabindex='0']").count()
        self.assertEqual(focusable, 1, "one stop for Tab, however large the graph is")

    def test_what_is_selected_in_the_table_is_selected_in_the_picture(self):
        self.page.locator("tr[data-partition='7']").click()
        self.assertEqual(self.page.eval_on_selector_all(".item.selected", "all => all.map(e => e.id)"), ["box-0-8"])
        frame, box = self.page.locator(".frame").bounding_box(), self.box(7).locator(".box").bounding_box()
        self.assertTrue(frame["y"] <= box["y"] <= frame["y"] + frame["height"], "it was brought into view")
        self.assertGreater(self.page.locator(".edge.touched").count(), 1)

    def test_dragging_pans_and_the_wheel_scrolls_the_page_until_the_graph_is_pressed(self):
        self.page.evaluate("document.activeElement.blur()")
        frame = self.page.locator("svg.graph").bounding_box()
        place = (frame["x"] + 30, frame["y"] + 100)
        moved = "document.querySelector('.world').getAttribute('transform')"
        before, top = self.page.evaluate(moved), self.page.evaluate("scrollY")
        self.page.mouse.move(*place)
        self.page.mouse.wheel(0, 40)
        self.page.wait_for_function("top => scrollY > top", arg=top)
        self.assertEqual(self.page.evaluate(moved), before)
        self.page.mouse.down()
        self.page.mouse.move(place[0] + 60, place[1] + 20, steps=4)
        self.page.mouse.up()
        self.assertNotEqual(self.page.evaluate(moved), before)


if __name__ == "__main__":
    unittest.main()
