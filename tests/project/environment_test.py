"""docs/environment.md lists the environment variables that the tree reads: all of them, and no others."""

import re
import unittest

from source import files, text

CODE = {".cc", ".h", ".c", ".py", ""}  # scripts have no suffix


def page() -> dict[str, tuple[str, ...]]:
    """The page's table: variable → meaning, when unset, read by."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \| (.*?) \| (.*?) \|$", text("docs/environment.md"), re.MULTILINE)
    return {name: tuple(rest) for name, *rest in rows}


def table() -> dict[str, tuple[str, str]]:
    """The table of src/support/environment.cc: variable → meaning, when unset."""
    rows = re.findall(r'EnvironmentVariable\{"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\}', text("src/support/environment.cc"))
    return {name: (meaning, when_unset) for name, meaning, when_unset in rows}


def read_outside_of_the_product() -> set[str]:
    """The variables that tests, benchmarks and scripts read: by getenv or a function over it, os.environ, ${NAME:-default}."""
    found = set()
    for path in [*files("tests", "benchmarks", "tools"), *files(".ci")]:
        if path.suffix in CODE and path.parent.name != "project":
            code = text(path)
            set_here = set(re.findall(r'\bsetenv\("([A-Z_]+)"', code))
            names = re.findall(r'\b(?:getenv|Setting)\("([A-Z_]+)"', code)
            names += re.findall(r'\benviron(?:\.get\(|\[)"([A-Z_]+)"(?!\] = )', code)
            names += re.findall(r"\$\{([A-Z_]+):-", code)
            found.update(set(names) - set_here)
    found.update(re.findall(r"\$\{([A-Z_]+):-", text("setup")))
    found.update(re.findall(r'"(COLLAGE_(?:SOURCE|BUILD))": ', text("tests/cli/follow_page")))
    return found


class Environment(unittest.TestCase):
    def test_the_page_repeats_the_table_of_the_product(self):
        rows = {name: (row[0], row[1]) for name, row in page().items() if row[2] == "Collage"}
        self.assertEqual(rows, table())
        self.assertGreater(len(rows), 10)

    def test_the_page_has_what_tests_and_scripts_read(self):
        rows = {name for name, row in page().items() if row[2] != "Collage"}
        self.assertEqual(rows, read_outside_of_the_product() - table().keys())

    def test_the_product_reads_variables_through_its_table_only(self):
        direct = [
            str(path)
            for path in files("src", "include", "tools", "python", "examples")
            if path.suffix in CODE and path.name != "environment.cc" and re.search(r"(?<!fe)getenv\(", text(path))
        ]
        self.assertEqual(direct, [])

    def test_every_row_of_the_table_is_read(self):
        code = "".join(text(path) for path in files("src", "tools/collage") if path.suffix in (".cc", ".h"))
        read = set(re.findall(r'GetEnvironment\("([A-Z_]+)"\)', code))
        if "temp_directory_path()" in code:
            read.add("TMPDIR")
        python = "".join(text(path) for path in files("python") if path.suffix == ".py")
        read.update(re.findall(r'os\.environ\.(?:get|setdefault)\("([A-Z_]+)"', python))
        self.assertEqual(read, set(table()))


if __name__ == "__main__":
    unittest.main()
