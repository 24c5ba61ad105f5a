"""tools/check_links passes on the tree, and finds links that lead nowhere in a made-up one, with file and line."""

import subprocess
import unittest

from made_up_tree import SOURCE, MadeUpTreeTest


class CheckLinks(MadeUpTreeTest):
    def finds(self, message: str) -> None:
        self.assert_finds(message, "tools/check_links")

    def test_this_tree_passes(self) -> None:
        done = subprocess.run([SOURCE / "tools/check_links"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^\d\d+ pages, \d\d+ links: 0 errors")

    def test_made_up_tree_passes(self) -> None:
        self.append(
            "README.md", "\n[site](https://example.org/absent) ![](src/stages.txt) [up](./src/../README.md#title)\n"
        )
        self.assertIn("1 pages, 5 links: 0 errors", self.assert_passes("tools/check_links"))

    def test_absent_file(self) -> None:
        self.write("docs/page.md", "\n[a\nb](../src/absent.h)\n")
        self.finds("docs/page.md:2: error: link '../src/absent.h': there is no 'src/absent.h'")

    def test_absent_heading(self) -> None:
        self.write("docs/page.md", "[a](../README.md#two-words) [b](../README.md#three-words)\n")
        self.finds("docs/page.md:1: error: link '../README.md#three-words': 'README.md' has no heading '#three-words'")

    def test_absent_heading_of_the_page_itself(self) -> None:
        self.append("README.md", "[a](#absent)\n```\n# Absent\n```\n")
        self.finds("README.md:6: error: link '#absent': 'README.md' has no heading '#absent'")

    def test_headings_of_one_text_are_numbered(self) -> None:
        self.append("README.md", "\n## Title\n\n[a](#title-1) [b](#title-2)\n")
        self.finds("README.md:9: error: link '#title-2'")
        self.assertNotIn("#title-1'", self.run_tool("tools/check_links")[1])

    def test_definition(self) -> None:
        self.append("README.md", "\nSee [that][there].\n\n[there]: docs/absent.md\n")
        self.finds("README.md:9: error: link 'docs/absent.md': there is no 'docs/absent.md'")

    def test_link_out_of_the_tree(self) -> None:
        self.append("README.md", "\n[a](../absent)\n")
        self.finds("README.md:7: error: link '../absent': leads out of the tree")

    def test_code_holds_no_links(self) -> None:
        self.append("README.md", "\n`[a](absent)` ``[b](`absent)``\n\n```\n[c](absent)\n```\n")
        self.assert_passes("tools/check_links")


if __name__ == "__main__":
    unittest.main()
