"""Text of another language is read by that language's classes of characters, not by Unicode's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from changes.model.digits import is_digits

ROOT = Path(__file__).parents[2]
READERS = (
    "changes", "changes/sql/spark", "sparkwriter/sql", "databases/base", "daemon/operations/verify",
)  # fmt: skip
"""Folders that read what servers and their connectors write: SQL, types, numbers."""

OWN = frozenset((
    "changes/routes/expressions/syntax.py", "changes/model/names.py",
    "changes/routes/shaping/layout.py",
    "changes/formats/debezium/untyped.py", "databases/base/section.py",
))  # fmt: skip
"""Files whose patterns read binlogd's own language: the configuration."""

FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
CLASSES = re.compile(r"(?<!\\)(?:\\\\)*\\[swdbSWDB]")


def _texts(node: ast.AST) -> str:
    return "".join(
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


def _unicode(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        if isinstance(of, ast.Name) and of.id == "re" and name in FUNCTIONS and node.args:
            flags = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            if CLASSES.search(_texts(node.args[0])) and "ASCII" not in flags:
                yield node.lineno, ast.unparse(node)
        elif name in ("isspace", "isdecimal", "isnumeric", "isalnum", "isalpha"):
            yield node.lineno, ast.unparse(node)


def files() -> list[str]:
    found = (file for folder in READERS for file in (ROOT / folder).rglob("*.py"))
    return sorted(str(file.relative_to(ROOT)) for file in found)


def test_patterns_that_read_other_languages_are_ascii() -> None:
    r"""``\s``, ``\w``, ``\d`` and ``\b`` stand beside re.ASCII, and digits are ``is_digits``."""
    found = [
        f"{file}:{line}: {text}"
        for file in files()
        if file not in OWN
        for line, text in _unicode(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    ]
    assert found == []
    assert set(files()) >= OWN


@pytest.mark.parametrize("text", ["", "\uff11", "\u00b2", "1_0", " 1", "+1", "-1", "1.0", "nan"])
def test_digits_are_those_of_ascii(text: str) -> None:
    """Python's int() takes some of these, its isdigit() others."""
    assert not is_digits(text)
    assert is_digits("0123456789")
