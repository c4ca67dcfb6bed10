"""Refuses names that no target may have: a catalog makes folders of them, maybe another's.

A source's users choose its names, so a target's name is checked before anything is created. One
that leaves the warehouse, or can't be shown, is left out by itself.
"""

from __future__ import annotations

import unicodedata

from changes.model import TargetName


def name_problem(name: str) -> str | None:
    """Why a namespace or table in the lake can't be named so, None where it can."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return f"{name!r} means another folder"
    if "/" in name:
        return f"{name!r} holds a slash, which leads to another folder"
    # Cs: half a character, which no UTF-8 has.
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
        return f"{name!r} holds a control character"
    return None


def target_problem(target: TargetName) -> str | None:
    """The same for a target; its sink's name is from the configuration."""
    for what, name in (("namespace", target.namespace), ("table", target.table)):
        if (problem := name_problem(name)) is not None:
            return f"no {what} in the lake is named so: {problem}"
    return None
