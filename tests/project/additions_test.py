"""Diffs: those that the documentation shows as examples fit the tree, so that a reader can apply them."""

import re
import unittest

from source import ROOT, files, text

PAGES = [path for path in files() if path.suffix == ".md"]


def diffs(page):
    """The changes that a page shows: file, its lines before the change, lines after it."""
    for block in re.findall(r"^```diff\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE):
        for old, new, body in re.findall(r"^--- (\S+)\n\+\+\+ (\S+)\n((?:(?!--- ).*\n)*)", block, re.MULTILINE):
            for hunk in re.split(r"^@@.*\n", body, flags=re.MULTILINE):
                if not hunk:
                    continue
                lines = hunk.splitlines()
                before = "".join(line[1:] + "\n" for line in lines if line[:1] in (" ", "-"))
                after = "".join(line[1:] + "\n" for line in lines if line[:1] in (" ", "+"))
                yield old.removeprefix("a/"), new.removeprefix("b/"), before, after


class Additions(unittest.TestCase):
    def test_every_example_can_be_applied(self):
        count = 0
        for page in PAGES:
            for old, new, before, after in diffs(page):
                with self.subTest(page=page.name, file=new):
                    count += 1
                    self.assertNotEqual(before, after)
                    if old == "/dev/null":
                        self.assertEqual(before, "")
                        self.assertFalse((ROOT / new).exists(), "the file is there already")
                        self.assertTrue((ROOT / new).parents[1].is_dir(), "its folder may be new, the one around it not")
                    else:
                        self.assertEqual(old, new)
                        self.assertEqual(("\n" + text(old)).count("\n" + before), 1, "the lines before the change")
        self.assertGreater(count, 10)


if __name__ == "__main__":
    unittest.main()
