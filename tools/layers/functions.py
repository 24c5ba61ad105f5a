"""The functions of a source and their lengths, found by braces: no compiler, no build."""

import ast
import re
from dataclasses import dataclass, field

from layers.source_text import SourceText

_WORD = re.compile(r"\w+|::|->|[^\w\s]")
_BRACE = re.compile(r"[{}]")
_TYPES = {"class", "struct", "union"}
_TESTS = {"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P"}


@dataclass(frozen=True)
class Function:
    """A function, named as in its definition; `length` counts the lines from its name to its closing brace."""

    name: str
    line: int
    length: int


@dataclass
class _Token:
    text: str
    line: int


@dataclass
class _Block:
    """The kind of block that a brace opened: a `scope` (namespace or type), a `function`, or another, such as an initializer."""

    kind: str
    depth: int
    name: str = ""
    line: int = 0


@dataclass
class _Scanner:
    """Reads tokens in order. `head` is what came since the last declaration ended; `depth` counts open parentheses."""

    blocks: list[_Block] = field(default_factory=list)
    head: list[_Token] = field(default_factory=list)
    depth: int = 0
    functions: list[Function] = field(default_factory=list)

    def take(self, token: _Token) -> None:
        if token.text == "{":
            self._open(token)
        elif token.text == "}":
            self._close(token)
        else:
            self._declare(token)

    def declares(self) -> bool:
        """Whether the next token may be part of a declaration; within functions only braces are of interest."""
        return not self.blocks or self.blocks[-1].kind == "scope"

    def _open(self, token: _Token) -> None:
        if not self.declares():
            self.blocks.append(_Block("inner", self.depth))
            return
        block = _Block("other", self.depth)
        if self.depth == 0:
            block.kind, name = _classify(self.head)
            if name is not None:
                block.name, block.line = name.text, name.line
        self.blocks.append(block)
        if block.kind == "scope":
            self.head = []

    def _close(self, token: _Token) -> None:
        if not self.blocks:
            raise ValueError(f"line {token.line}: a closing brace without an opening one")
        block = self.blocks.pop()
        self.depth = block.depth
        if block.kind == "function":
            self.functions.append(Function(block.name, block.line, token.line - block.line + 1))
        if block.kind in ("function", "scope"):
            self.head = []
        elif block.kind == "other":
            self.head.append(token)

    def _declare(self, token: _Token) -> None:
        self.depth += (token.text in "([") - (token.text in ")]")
        ends = token.text == ";" and self.depth == 0
        is_access = token.text == ":" and [one.text for one in self.head] in (["public"], ["private"], ["protected"])
        if ends or is_access:
            self.head = []
        else:
            self.head.append(token)


def _without(head: list[_Token]) -> list[_Token]:
    """Returns the head without `template <…>`, attributes and `alignas(…)`, whose brackets say nothing of its kind."""
    kept: list[_Token] = []
    skipped = 0  # open brackets of the part that is being left out
    for i, token in enumerate(head):
        before = head[i - 1].text if i > 0 else ""
        opens = (token.text == "<" and before == "template") or (token.text == "(" and before == "alignas")
        opens = opens or (token.text == "[" and i + 1 < len(head) and head[i + 1].text == "[")
        if skipped == 0 and opens:
            skipped = 1
        elif skipped > 0:
            skipped += (token.text in "<([") - (token.text in ">)]")
        elif token.text not in ("template", "alignas"):
            kept.append(token)
    return kept


def _outside_parentheses(head: list[_Token]) -> list[str]:
    """Returns the texts of the head, each group in parentheses as one `()`."""
    texts: list[str] = []
    depth = 0
    for token in head:
        if token.text == "(":
            if depth == 0:
                texts.append("()")
            depth += 1
        elif token.text == ")":
            depth -= 1
        elif depth == 0:
            texts.append(token.text)
    return texts


def _classify(head: list[_Token]) -> tuple[str, _Token | None]:
    """Returns the kind of block that a brace behind `head` opens and, of a function, its name."""
    head = _without(head)
    texts = _outside_parentheses(head)
    if not texts or "enum" in texts:
        return "other", None
    if "namespace" in texts or texts == ["extern", '"', '"']:
        return "scope", None
    if "()" not in texts:
        return ("scope" if _TYPES & set(texts) and "=" not in texts else "other"), None
    if "operator" not in texts and "=" in texts:
        return "other", None
    # A member's initializer, `: a_{1}`, follows a name; the body follows a bracket.
    if ":" in texts[texts.index("()") :] and (texts[-1] not in ("()", "}", ".")):
        return "other", None
    return "function", _name(head)


def _name(head: list[_Token]) -> _Token:
    """Returns the qualified name before the parameters, `Suite.Name` of a test."""
    texts = [token.text for token in head]
    if texts[0] in _TESTS:
        return _Token(".".join(text for text in texts[2:] if text not in ",)"), head[0].line)
    start = texts.index("operator") + 2 if "operator" in texts else texts.index("(", 1)
    end = next(i for i in range(start, len(texts)) if texts[i] == "(")
    begin = texts.index("operator") if "operator" in texts else end - 1
    if begin > 0 and texts[begin - 1] == "~":
        begin -= 1
    while begin > 1 and texts[begin - 1] == "::":
        begin = _qualifier(texts, begin - 2)
    return _Token("".join(texts[begin:end]), head[begin].line)


def _qualifier(texts: list[str], end: int) -> int:
    """Returns where the name that ends at `end` begins, its arguments in angle brackets included."""
    depth = 0
    for i in range(end, -1, -1):
        depth += (texts[i] == ">") - (texts[i] == "<")
        if depth == 0 and texts[i] != "<":
            return i
    return end


def cpp_functions(source: SourceText) -> list[Function]:
    """Returns the functions with a body, those in classes included, lambdas not.

    Raises:
        ValueError: braces do not balance.
    """
    scanner, text = _Scanner(), source.bare
    position, line = 0, 1
    while match := (_WORD if scanner.declares() else _BRACE).search(text, position):
        line += text.count("\n", position, match.start())
        position = match.end()
        scanner.take(_Token(match[0], line))
    if scanner.blocks:
        raise ValueError("an opening brace without a closing one")
    return scanner.functions


def python_functions(text: str) -> list[Function]:
    """Returns the functions of a Python source, methods included; a documentation string is not counted."""
    functions = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            doc = (first.end_lineno or first.lineno) - first.lineno + 1 if is_doc else 0
            functions.append(Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1 - doc))
    return functions
