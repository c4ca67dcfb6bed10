"""Names of modules in texts: programs that tests run, and what they patch. mypy reads neither."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_ratchet import ROOT

ROOMS = "actors|bench|changes|daemon|databases|demo|offsets|settings|sources|sparkwriter|tests"
IMPORT = re.compile(rf"^\s*from ((?:{ROOMS})(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+)*)$", re.M)
PATCHED = re.compile(rf"(?:{ROOMS})(?:\.[a-z]\w*)+\.[A-Za-z_]\w*")


def texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def patches(path: Path) -> Iterator[str]:
    """What ``monkeypatch.setattr`` is given by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=name), *_]):
                if PATCHED.fullmatch(str(name)):
                    yield str(name)


def there(module: str, name: str) -> bool:
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("folder", ["tests", "bench", "demo"])
def test_what_a_text_names_is_there(folder: str) -> None:
    """A move leaves no program behind that fails where it is run, in the slowest tier."""
    lost = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for text in texts(path):
            for module, names in IMPORT.findall(text):
                for name in (part.split(" as ")[0] for part in names.split(", ")):
                    lost += [] if there(module, name) else [f"{path}: from {module} import {name}"]
        for patched in patches(path):
            module, _, name = patched.rpartition(".")
            lost += [] if there(module, name) else [f"{path}: {patched}"]
    assert lost == []
