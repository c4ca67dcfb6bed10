"""Who assigns what: a target's state has one owner for each part of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import actors

ROOT = Path(actors.__file__).parent
PLANS = {"barrier", "total"}
"""What one function makes and the next one fills: no state."""
MODULES = {"threading"}


def assigned_by_others(tree: ast.AST) -> Iterator[str]:
    """Attributes that are assigned through a name that is not ``self``."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets):
                places = targets
            case ast.AugAssign(target) | ast.AnnAssign(target):
                places = [target]
            case _:
                continue
        for place in places:
            for one in place.elts if isinstance(place, ast.Tuple) else [place]:
                if isinstance(one, ast.Attribute) and not _is_own(one):
                    yield f"line {one.lineno}: {ast.unparse(one)}"


def _is_own(place: ast.expr) -> bool:
    steps = 0
    while isinstance(place, ast.Attribute | ast.Subscript):
        place, steps = place.value, steps + 1
    name = place.id if isinstance(place, ast.Name) else ""
    return (name == "self" and steps == 1) or name in PLANS | MODULES


def test_nobody_assigns_a_field_of_somebody_else() -> None:
    """What happens to a target, its queue or its quarantine is a method there, with a name."""
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if (lines := [*assigned_by_others(ast.parse(path.read_text()))])
    }
    assert found == {}
