"""docs/troubleshooting.md: the messages that it explains are messages of the product, and its exit codes are the product's."""

import re
import unittest

from source import files, text

PAGE = text("docs/troubleshooting.md")


def literals() -> str:
    """The text of all string literals, with those that the compiler joins joined, and `{}` for each placeholder."""
    code = "\n".join(text(path) for path in files("src", "tools/collage") if path.suffix in (".cc", ".h"))
    joined = re.sub(r'"\s*\n\s*"', "", code)
    return re.sub(r"\{[^{}\"]*\}", "{}", "\n".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', joined)))


def messages() -> list[str]:
    """The messages in the first column of the page's tables behind that of the exit codes."""
    tables = PAGE.partition("\n## Import\n")[2]
    cells = re.findall(r"^\| (.*?) \| ", tables, re.MULTILINE)
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell) if "lib" not in message]


class Troubleshooting(unittest.TestCase):
    def test_messages_are_those_of_the_product(self):
        known = literals()
        missing = []
        for message in messages():
            # Numbers, names and plurals are put in at run time.
            parts = re.split(r"\b(?:NAME|N|operators|costs|are)\b", message)
            missing += [f"{message}: {part}" for part in parts if part.strip(" ':()") not in known]
        self.assertEqual(missing, [])
        self.assertGreater(len(messages()), 20)

    def test_exit_codes_are_those_of_the_help(self):
        codes = re.findall(r"^\| (\d+) \| ", PAGE, re.MULTILINE)
        footer = text("tools/collage/main.cc").partition("Exit codes:")[2].partition(')"')[0]
        self.assertEqual(codes, re.findall(r"(?:^|·|\n)\s*(\d+) ", footer))


if __name__ == "__main__":
    unittest.main()
