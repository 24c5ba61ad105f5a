"""Pages: their links lead somewhere, files and tests that they name are there, and docs/README.md lists every page."""

import re
import unittest
from pathlib import Path

from source import ROOT, files, text

PAGES = [path for path in files() if path.suffix == ".md"]
FOLDERS = ("benchmarks", "cmake", "docs", "examples", "include", "python", "src", "tests", "tools")


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings make: lower case, words joined by hyphens, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", text(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Pages(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        missing = []
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                if not path.exists() or (anchor and anchor not in anchors(path)):
                    missing.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(missing, [])

    def test_named_files_are_there(self):
        """Paths in code spans, `src/x/y`, may lack the suffix that a header and its source share."""
        missing = []
        for page in PAGES:
            for name in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[a-z0-9_./-]*)`", text(page)):
                if "/acme/" in name:  # what a guide has its reader write
                    continue
                if not (ROOT / name).exists() and not list(ROOT.glob(name + ".*")):
                    missing.append(f"{page.relative_to(ROOT)}: {name}")
        self.assertEqual(missing, [])

    def test_named_tests_are_there(self):
        """Tests that docs/rfcs.md names: as ctest has them (`unit.STAGE.Suite.Case`, `golden.FOLDER.CASE`), or `FILE::CASE`."""
        suites = re.compile(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", re.MULTILINE)
        cases = {case for path in files("tests") if path.suffix == ".cc" for case in suites.findall(text(path))}

        def is_there(name: str) -> bool:
            if "::" in name:
                path, function = name.split("::")
                return (ROOT / path).exists() and f"def {function}(" in text(path)
            if name.startswith("golden."):
                return (ROOT / "tests" / (name.replace(".", "/") + ".relay")).exists()
            suite, case = name.split(".")[-2:]
            return (suite.split("/")[-1], case.split("/")[0]) in cases

        names = re.findall(r"`((?:unit|property|conformance|golden)\.[^`]+|tests/[^`]+::[^`]+)`", text("docs/rfcs.md"))
        self.assertGreater(len(names), 0)
        self.assertEqual([name for name in names if not is_there(name)], [])

    def test_the_index_lists_every_page(self):
        linked = set(re.findall(r"\]\(([a-z-]+\.md)(?:#[a-z-]+)?\)", text("docs/README.md")))
        self.assertEqual(linked, {path.name for path in files("docs") if path.suffix == ".md"} - {"README.md"})
        self.assertTrue("(docs/README.md)" in text("README.md"), "README.md has no link to docs/README.md")


if __name__ == "__main__":
    unittest.main()
