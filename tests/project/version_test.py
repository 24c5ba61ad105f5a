"""CMakeLists.txt is the only file that states the version; pyproject.toml reads it there, and CHANGELOG.md has its notes."""

import re
import unittest

import tomllib
from source import text


class Version(unittest.TestCase):
    def test_the_wheel_has_the_version_of_the_build(self):
        stated = re.search(r"^project\(Collage VERSION ([0-9.]+) ", text("CMakeLists.txt"), re.MULTILINE)[1]
        project = tomllib.loads(text("pyproject.toml"))
        self.assertEqual(project["project"]["dynamic"], ["version"])
        self.assertNotIn("version", project["project"])
        (row,) = project["tool"]["dynamic-metadata"]
        self.assertEqual((row["field"], row["input"]), ("version", "CMakeLists.txt"))
        self.assertEqual(re.search(row["regex"], text("CMakeLists.txt"), re.MULTILINE)["value"], stated)

    def test_the_changelog_begins_with_what_is_unreleased_and_this_version(self):
        headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text("CHANGELOG.md"), re.MULTILINE)
        stated = re.search(r"^project\(Collage VERSION ([0-9.]+) ", text("CMakeLists.txt"), re.MULTILINE)[1]
        self.assertEqual(headings[0], ("Unreleased", ""))
        self.assertEqual(headings[1][0], stated)
        self.assertTrue(all(date for _, date in headings[1:]), "a release has a date")

    def test_the_changelog_names_the_formats_that_are_written(self):
        unreleased = text("CHANGELOG.md")
        executable = re.search(r"\.version = (\d+),", text("src/runtime/plan/executable_format.h"))[1]
        bytecode = re.search(r"\.version = (\d+),", text("src/bytecode/file_format.h"))[1]
        self.assertIn(f"executables are format {executable}", unreleased.lower())
        self.assertIn(f"bytecode is format {bytecode}", unreleased.lower())


if __name__ == "__main__":
    unittest.main()
