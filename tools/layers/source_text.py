"""Text of C++ sources without what a rule must not see: comments, literals, preprocessor lines."""

import re
from dataclasses import dataclass
from functools import cached_property

# A number is a token of its own so that the separator of 1'000 does not begin a character literal.
_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:[^\n\\]|\\.)* | /\*.*?\*/ )
  | (?P<string>  R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
  | (?P<number>  \b\d[\w'.]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*\#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def _blank(text: str) -> str:
    """Returns spaces in place of `text`, with its line ends."""
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Include:
    """An `#include "path"` on a line, counted from 1."""

    path: str
    line: int


@dataclass(frozen=True)
class SourceText:
    """A C++ source. Every view has the lines and columns of `text`."""

    text: str

    @cached_property
    def code(self) -> str:
        """The text without comments."""
        return _TOKEN.sub(lambda match: _blank(match[0]) if match["comment"] else match[0], self.text)

    @cached_property
    def comments(self) -> str:
        """The text without what is not a comment."""
        parts, end = [], 0
        for match in _TOKEN.finditer(self.text):
            if match["comment"]:
                parts += [_blank(self.text[end : match.start()]), match[0]]
                end = match.end()
        return "".join([*parts, _blank(self.text[end:])])

    @cached_property
    def bare(self) -> str:
        """The text without comments, preprocessor lines and what literals hold; a string is a pair of quotes."""

        def bared(match: re.Match[str]) -> str:
            if match["string"]:
                return '"' + _blank(match[0])[1:-1] + '"'
            return _blank(match[0]) if match["comment"] else match[0]

        return _DIRECTIVE.sub(lambda match: _blank(match[0]), _TOKEN.sub(bared, self.text))

    def includes(self) -> list[Include]:
        """Returns the includes in quotes, those in comments not."""
        return [
            Include(match[1], self.code.count("\n", 0, match.start()) + 1) for match in _INCLUDE.finditer(self.code)
        ]
