"""Names that no target has: a catalog makes folders of them, and these would be others' folders.

A source's names are its users' to choose, so what comes of them is looked at before anything is
made: one that leaves the warehouse, or can't be shown, is left out by itself.
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
    """The same of a target; its sink is named by the configuration."""
    for what, name in (("namespace", target.namespace), ("table", target.table)):
        if (problem := name_problem(name)) is not None:
            return f"no {what} in the lake is named so: {problem}"
    return None
