"""Finds targets with two owners, by the routes' patterns, since no table is known yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from changes.routes.routing import Route


def shared_targets(pipelines: Mapping[str, Sequence[Route]]) -> Iterator[str]:
    """One line for each two pipelines whose routes could lead to the same target.

    A target has one owner: two would fence each other for ever.
    """
    claims = [
        (name, glob)
        for name, routes in pipelines.items()
        for route in routes
        for glob in target_globs(route)
    ]
    for i, (name, glob) in enumerate(claims):
        for other, other_glob in claims[:i]:
            if name != other and globs_meet(glob, other_glob):
                yield (
                    f"pipeline.{name}: its targets {glob!r} may be those of "
                    f"pipeline.{other} ({other_glob!r}): a target has one owner; "
                    "narrow include or change target; `binlogd check-config` shows what goes where"
                )


def target_globs(route: Route) -> Iterator[str]:
    """The patterns of the targets that a route can lead to."""
    for pattern in route.globs:
        database, dot, table = pattern.partition(".")
        if not dot:
            database, table = ("*", "*") if pattern == "*" else (pattern, "*")
        yield route.template.replace("{database}", database).replace("{table}", table)


def globs_meet(one: str, two: str) -> bool:
    """Whether some name matches both patterns (``*`` and ``?``; a class counts as any one)."""
    one, two = (re.sub(r"\[[^\]]*\]", "?", glob) for glob in (one, two))
    states = {(0, 0)}
    seen: set[tuple[int, int]] = set()
    while states:
        i, j = states.pop()
        if (i, j) in seen:
            continue
        seen.add((i, j))
        if i == len(one) and j == len(two):
            return True
        a, b = one[i : i + 1], two[j : j + 1]
        if a == "*":
            states |= {(i + 1, j)} | ({(i, j + 1)} if b else set())
        if b == "*":
            states |= {(i, j + 1)} | ({(i + 1, j)} if a else set())
        if a and b and "*" not in (a, b) and (a == b or "?" in (a, b)):
            states.add((i + 1, j + 1))
    return False
