"""Sets of transactions as MySQL and MariaDB print them. Pure.

A set is, by where its numbers count (MySQL: a server, or a server with a tag; MariaDB: a domain
with a server), the spans of numbers in it. MariaDB prints the last number alone: all before it is
in the set, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from changes.model.digits import is_digits

GtidSet = Mapping[str, tuple[tuple[int, int], ...]]


def mysql_set(text: str) -> GtidSet:
    """``UUID:1-7:9:TAG:1-3,UUID:5``. Raises ValueError where it is none."""
    found: dict[str, list[tuple[int, int]]] = {}
    for group in filter(None, re.sub(r"\s", "", text, flags=re.ASCII).lower().split(",")):
        server, *parts = group.split(":")
        name = server
        for part in parts:
            first, _, last = part.partition("-")
            if not is_digits(first):
                name = f"{server}:{part}"
                continue
            found.setdefault(name, []).append((int(first), int(last or first)))
    return {name: _joined(spans) for name, spans in found.items()}


def mariadb_set(text: str) -> GtidSet:
    """``0-1-7,5-2-9``. Raises ValueError where it is none."""
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for one in filter(None, re.sub(r"\s", "", text, flags=re.ASCII).split(",")):
        domain, server, number = one.split("-")
        found[f"{int(domain)}-{int(server)}"] = ((0, int(number)),)
    return found


def is_within(inner: GtidSet, outer: GtidSet) -> bool:
    """Whether each transaction of one set is in the other."""
    return all(
        any(low <= first and last <= high for low, high in outer.get(name, ()))
        for name, spans in inner.items()
        for first, last in spans
    )


def _joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """In order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)
