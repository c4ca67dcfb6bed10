"""Replaces references in a configuration's texts: ``${NAME}``, ``${file:PATH}`` and the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from changes.model.printable import holds_half
from settings.secrets import MASK, SecretMissing, embedded_secrets, looks_secret, read_secret

_REFERENCE = re.compile(
    r"\$\{(?:(file|credential):(?!-)([^}]+)|([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}"
)


_OTHERS_REFERENCES = "spark.conf."
"""Spark has references of its own in its settings: what looks like one may be meant for it."""


_UNKNOWN = "0" * 16
"""In the place of what can't be looked up: a number, and long enough for a secret."""


class Lookup(NamedTuple):
    """The sources of ``${…}``, and what is found on the way: secrets by their setting, errors."""

    environment: Mapping[str, str]
    folder: Path
    lenient: bool
    secrets: dict[str, set[str]]
    problems: list[str]


def interpolate(value: Any, lookup: Lookup, at: str) -> Any:
    """Replace ``${NAME}``, ``${NAME:-default}``, ``${file:…}``, ``${credential:…}`` in texts."""
    if isinstance(value, dict):
        return {
            key: interpolate(inner, lookup, f"{at}.{key}" if at else key)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [interpolate(inner, lookup, at) for inner in value]
    if not isinstance(value, str):
        return value

    strange = re.search(r"\$\{[^}]*\}?", _REFERENCE.sub("", value))
    secret = looks_secret(at) or any(embedded_secrets(value))
    if strange and not lookup.lenient and not at.startswith(_OTHERS_REFERENCES):
        lookup.problems.append(
            f"{at}: {MASK if secret else strange[0]} is no reference; "
            "allowed: ${NAME}, ${NAME:-default}, ${file:PATH}, ${credential:NAME}"
        )
    return _REFERENCE.sub(lambda match: _referenced(match, lookup, at, secret), value)


def _referenced(match: re.Match[str], lookup: Lookup, at: str, secret: bool) -> str:
    """What one reference of the text at this place stands for. An empty ``secret`` is missing, but
    where ``${NAME:-}`` says that it may be empty."""
    kind, place, name, default = match.groups()
    missing = f"the environment variable {name} is not set"
    if kind is not None:
        try:
            text = read_secret(kind, place, lookup.environment, lookup.folder)
        except SecretMissing as error:
            missing = str(error)
        else:
            lookup.secrets.setdefault(at, set()).add(text)
            return text
    elif name in lookup.environment:
        if secret and not lookup.environment[name] and default != "":
            missing = f"the environment variable {name} is empty"
        elif not holds_half(lookup.environment[name]):
            return lookup.environment[name]
        else:
            missing = f"the environment variable {name} is not UTF-8 text"
    elif default is not None:
        return str(default)
    if lookup.lenient and not at.startswith("daemon."):
        return _UNKNOWN
    lookup.problems.append(f"{at}: {missing}")
    return ""
