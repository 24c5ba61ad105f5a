"""tools/check_words passes on the tree, and finds sentences without a subject and non-standard terms in a made-up one."""

import subprocess
import unittest

from made_up_tree import SOURCE, MadeUpTreeTest

BASELINE = "tools/check_words.baseline"


class CheckWords(MadeUpTreeTest):
    def finds(self, message: str) -> None:
        self.assert_finds(message, "tools/check_words")

    def passes(self) -> str:
        return self.assert_passes("tools/check_words")

    def test_this_tree_passes(self) -> None:
        done = subprocess.run([SOURCE / "tools/check_words"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_made_up_tree_passes(self) -> None:
        self.assertIn(" files: 0 openings, 0 terms, 0 areas grew", self.passes())

    def test_sentence_of_a_page(self) -> None:
        self.append("README.md", "\nOne sentence. What is off\nby more is out.\n")
        self.finds("README.md:7: opening: What is off by more is out.")

    def test_list_and_table(self) -> None:
        self.append("README.md", "\n- Of all nodes.\n\n| a | Those here. |\n")
        self.finds("README.md:7: opening: Of all nodes.")
        self.finds("README.md:9: opening: Those here.")

    def test_headings_questions_and_code_are_not_read(self) -> None:
        self.append("README.md", "\n## What is here\n\nWhat does it do? See `Of the heat`.\n\n```\nThose entrants\n```\n")
        self.passes()

    def test_doc_comments(self) -> None:
        self.append("src/ir/node.h", "/// Of all nodes,\n/// the first.\nint First();\nint last;  ///< what is left\n")
        self.finds("src/ir/node.h:2: opening: Of all nodes, the first.")
        self.finds("src/ir/node.h:5: opening: what is left")

    def test_term_with_the_standard_one(self) -> None:
        self.append("src/ir/node.h", "// Each Entrant of a\n// play-off.\n")
        self.finds("src/ir/node.h:2: term: 'Entrant': say contender")

    def test_known_ones_may_stay_and_shrink_but_not_grow(self) -> None:
        self.append("README.md", "\nOf one. Of two.\n")
        self.write(BASELINE, "# known\nopening README.md 2\n")
        self.passes()
        self.append("README.md", "\nOf three.\n")
        self.finds(f"{BASELINE}: error: 'opening README.md' is up from 2 to 3:")
        self.write("README.md", "Of one.\n")
        self.assertIn("1 areas have fewer than known", self.passes())
        self.assert_passes("tools/check_words", "--update")
        self.assertIn("\nopening README.md 1\n", (self.root / BASELINE).read_text())

    def test_update_raises_no_count(self) -> None:
        self.append("README.md", "\nOf one. Of two.\n")
        self.write(BASELINE, "opening README.md 1\n")
        self.assert_finds("is up from 1 to 2", "tools/check_words", "--update")
        self.assertIn("opening README.md 1\n", (self.root / BASELINE).read_text())


if __name__ == "__main__":
    unittest.main()
