"""Every field of CompileOptions has a row in the table of settings, or is for programs that call the compiler."""

import re
import unittest

from source import text

# Callables, and places that a command or the Python package fills in.
NO_SETTINGS = {"output", "estimate", "search_with", "should_stop", "first_checkpoint_seconds", "runner_python", "progress", "packs"}


class SettingsTable(unittest.TestCase):
    def test_every_field_has_a_row(self):
        struct = text("include/collage/compile.h").partition("struct CompileOptions {")[2].partition("\n};")[0]
        fields = re.findall(r"^  [A-Za-z][\w:<>,*() ]* \*?(\w+)(?: = [^;]+)?;$", struct, re.MULTILINE)
        rows = re.findall(r"&Options::(\w+)", text("src/driver/settings.cc"))
        self.assertEqual(sorted(set(fields) - NO_SETTINGS), sorted(set(rows)))
        self.assertLessEqual(NO_SETTINGS, set(fields))
        self.assertEqual(len(rows), len(set(rows)), "a field has two rows")


if __name__ == "__main__":
    unittest.main()
