"""A handler of named lists in one file; a call fails where the file ``fails`` says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def apply(batch: Any, context: Any) -> None:
    """Adds the keys."""
    kept = read(context)
    kept[context.target] = kept.get(context.target, []) + batch.read_all().column("id").to_pylist()
    Path(context.settings["file"]).write_text(json.dumps(kept))


def statement(context: Any, kind: str, to: str | None) -> None:
    """As the docs want it: what raises has done nothing."""
    said = f"{kind} {context.table}" + ("" if to is None else f" {to.rpartition('.')[2]}")
    if said in Path(context.settings["fails"]).read_text().splitlines():
        raise ValueError(f"no {said}")
    kept = read(context)
    moved = kept.pop(context.target, [])
    if to is not None:
        kept[to] = moved
    Path(context.settings["file"]).write_text(json.dumps(kept))


def read(context: Any) -> dict[str, list[int]]:
    """What is kept, by target."""
    path = Path(context.settings["file"])
    found: dict[str, list[int]] = json.loads(path.read_text()) if path.exists() else {}
    return found
