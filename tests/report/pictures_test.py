"""Pictures of the page beside stored ones, in both themes and at two widths.

Both are made 96 pixels wide and blurred by that, so letters of another shape differ little, while a chart, a colour or a panel that
is gone differs much. `python pictures_test.py --update` stores what is drawn now: look at it before.
"""

import base64
import os
import sys
import unittest
from contextlib import ExitStack
from pathlib import Path

import made_up
from browser import open_page, opened_browser, written

STORED = Path(__file__).parent / "pictures"
UPDATE = "--update" in sys.argv
# Mean difference of the pixels, of 255, in the block of 8 x 8 pixels that differs most. DejaVu Serif in place of DejaVu Sans makes
# at most 9, the smallest thing that a test here takes away 25.
MOST = 17.0
VIEWS = {
    "overview": "overview",
    "graph": "graph",
    "charts": "charts",
    "roofline": "roofline",
    "partitions": "partitions",
}

# Makes a picture (data URL) 96 pixels wide; returns a data URL.
SHRINK = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [96, Math.round((96 * image.height) / image.width)];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}"""
# Compares two pictures of one size; returns the mean difference in the block that differs most.
COMPARE = """async ([first, second]) => {
  const pixels = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [a, b] = [await pixels(first), await pixels(second)];
  if (a.width !== b.width || a.height !== b.height) return 255;
  const at = (x, y) => {
    const i = 4 * (y * a.width + x);
    return [0, 1, 2].reduce((sum, channel) => sum + Math.abs(a.data[i + channel] - b.data[i + channel]), 0) / 3;
  };
  let worst = 0;
  for (let top = 0; top < a.height; top += 8) {
    for (let left = 0; left < a.width; left += 8) {
      let block = 0, count = 0;
      for (let y = top; y < Math.min(a.height, top + 8); ++y) {
        for (let x = left; x < Math.min(a.width, left + 8); ++x, ++count) block += at(x, y);
      }
      worst = Math.max(worst, block / count);
    }
  }
  return worst;
}"""


def url(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


class PicturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.browser = cls.stack.enter_context(opened_browser())
        cls.file = cls.stack.enter_context(written(made_up.explanation(400, 6)))
        cls.eye = cls.browser.new_page()

    def compare(self, name, page):
        now = self.eye.evaluate(SHRINK, url(page.screenshot(animations="disabled")))
        file = STORED / f"{name}.png"
        if UPDATE:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(base64.b64decode(now.partition(",")[2]))
            return
        self.assertLess(self.eye.evaluate(COMPARE, [url(file.read_bytes()), now]), MOST, name)

    def open(self, width, height, scheme):
        viewport = {"width": width, "height": height}
        page, problems = open_page(
            self.browser, self.file, viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
        )
        page.add_style_tag(content="*, svg text { font-family: 'DejaVu Sans' !important; }")  # which every machine has
        return page, problems

    def check(self, width, height, scheme):
        page, problems = self.open(width, height, scheme)
        for view, section in VIEWS.items():
            page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
            if view == "graph":
                page.keyboard.press("]")
                page.locator("#box-0-1 .toggle").dispatch_event("click")
            with self.subTest(view=view):
                self.compare(f"{view}_{width}_{scheme}", page)
            page.keyboard.press("Escape")
        page.context.close()
        self.assertEqual(problems.seen, [])

    def test_light(self):
        self.check(1280, 800, "light")

    def test_dark(self):
        self.check(1280, 800, "dark")

    def test_wide(self):
        self.check(1920, 1080, "light")

    @unittest.skipIf(UPDATE, "pictures are being stored")
    def test_what_is_not_drawn_is_seen(self):
        page, _ = self.open(1280, 800, "light")
        for gone, view in ((".mixbar", "overview"), ("svg.graph .boxes", "graph"), ("#roofline svg", "roofline")):
            page.evaluate("id => document.getElementById(id).scrollIntoView()", VIEWS[view])
            page.evaluate("gone => document.querySelector(gone).remove()", gone)
            now = self.eye.evaluate(SHRINK, url(page.screenshot(animations="disabled")))
            stored = url((STORED / f"{view}_1280_light.png").read_bytes())
            self.assertGreater(self.eye.evaluate(COMPARE, [stored, now]), MOST, gone)
        page.context.close()


if __name__ == "__main__":
    os.environ.setdefault("COLLAGE_REPORT_COMMAND", str(Path(__file__).parents[2] / "build/dev/bin/collage"))
    unittest.main(argv=[word for word in sys.argv if word != "--update"])
