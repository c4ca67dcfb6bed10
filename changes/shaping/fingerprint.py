"""The fingerprint of a shape, by which a target knows whether its rows have the shape of now.

It is text for people to read, too: of the salt it has a digest alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_NOTHING: tuple[Any, ...] = (None, "", [], {}, False)


def fingerprint(said: Mapping[str, Any]) -> str:
    """What a shape says by its keys, without those that say nothing; empty where none does."""
    told = {key: value for key, value in said.items() if value not in _NOTHING}
    return json.dumps(told, ensure_ascii=False, sort_keys=True) if told else ""


def salt_digest(salt: str) -> str:
    """What shows that a salt is another one, and not what it is."""
    return hashlib.sha256(f"binlogd mask_salt {salt}".encode()).hexdigest()[:16] if salt else ""


def differing(held: str, wanted: str) -> list[str]:
    """The keys in which two fingerprints differ."""
    before, after = _read(held), _read(wanted)
    keys = sorted({*before, *after})
    return [key for key in keys if before.get(key) != after.get(key)]


def only_adds(held: str, wanted: str) -> bool:
    """Whether the second shape differs from the first by columns alone that it shows, too."""
    before, after = _read(held), _read(wanted)
    for key in differing(held, wanted):
        was, now = before.get(key), after.get(key)
        if key == "columns":
            grows = was is not None and (now is None or set(was) <= set(now))
        elif key == "drop_columns":
            grows = set(was or ()) >= set(now or ())
        else:
            grows = False
        if not grows:
            return False
    return True


def keeps_history(held: str) -> bool:
    """Whether a target of that fingerprint keeps each version of a row."""
    return bool(_read(held).get("history"))


def _read(text: str) -> dict[str, Any]:
    return dict(json.loads(text)) if text else {}
