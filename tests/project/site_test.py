"""The documentation as a site: every page is in it, every link of it leads somewhere, and its search knows the pages."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from source import ROOT


class Site(unittest.TestCase):
    def test_it_is_built_of_all_pages(self):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "html"
            command = [sys.executable, "-B", str(ROOT / "tools/site"), "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            index = (out / "index.html").read_text()
            for page in (ROOT / "docs").glob("*.md"):
                self.assertTrue((out / "docs" / f"{page.stem}.html").is_file(), page)
                if page.stem != "README":
                    self.assertTrue(f'href="docs/{page.stem}.html"' in index, page)
            words = re.search(r"Search.setIndex\((.*)\)", (out / "searchindex.js").read_text())
            self.assertIn("docs/concepts", json.loads(words.group(1))["docnames"])


if __name__ == "__main__":
    unittest.main()
