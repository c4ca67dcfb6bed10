"""Patterns of tables as Debezium and Connect take them. Pure.

A pattern has stars, as routes have: ``shop.order_*`` on database.table, where a star may span the
dot. Debezium's lists are regular expressions in Java's words, without regard to case: they take all
that the pattern takes, and maybe more, which the routes leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SET = re.compile(r"\[(!?)(\]?[^\]]*)\]")


def as_java(pattern: str, literal: str = "") -> str:
    """A pattern as an expression for the whole name. ``literal``: what stands in the place of a
    sign that no topic's name has; empty: the sign itself."""
    out, at = "", 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "[" and (found := _SET.match(pattern, at)):
            inside = re.sub(r"([\\\[\]&^])", r"\\\1", found[2])
            out += f"[{'^' if found[1] else ''}{inside}]" if not literal else "."
            at = found.end()
            continue
        out += {"*": ".*", "?": "."}.get(sign) or _sign(sign, literal)
        at += 1
    return out


def _sign(sign: str, literal: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_]", sign):
        return sign
    if literal and sign not in ".-":
        return literal
    # A comma separates the expressions of a list, unless a backslash stands before it.
    return f"\\{sign}" if sign.isascii() else sign


def as_list(patterns: Iterable[str]) -> str | None:
    """The value of ``table.include.list``; None where all tables are taken."""
    found = list(dict.fromkeys(patterns))
    if not found or "*" in found or "*.*" in found:
        return None
    return ",".join(map(as_java, found))


def new_patterns(config: Mapping[str, str], patterns: Iterable[str]) -> list[str]:
    """Those of the patterns that a connector with this configuration does not have."""
    had = config.get("table.include.list")
    if had is None:
        return []
    lists = set(re.split(r"(?<!\\),", had))
    return [pattern for pattern in patterns if as_java(pattern) not in lists]


def routers(topic: str, groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The transforms that bring each group's tables into its topic, and all else into ``topic``.

    Debezium names a table's topic TOPIC.DATABASE.TABLE, with ``_`` for signs that no topic has.
    """
    found: dict[str, str] = {}
    names = []
    for number, (group, patterns) in enumerate(groups.items()):
        tables = "|".join(f"(?:{as_java(pattern, '_')})" for pattern in patterns)
        # A group's own topic has no second dot, so no later expression takes it again.
        regex = rf"{re.escape(topic)}\.(?=[^.]+\.)(?:{tables})"
        found |= _router(f"group{number}", regex, group_topic(topic, group))
        names.append(f"group{number}")
    taken = "|".join(re.escape(group_topic(topic, group)) for group in groups)
    found |= _router("rest", f"(?!(?:{taken})$).*" if taken else ".*", topic)
    return {"transforms": ",".join([*names, "rest"]), **found}


def group_topic(topic: str, group: str) -> str:
    """The topic of a group."""
    return f"{topic}.{group}"


def _router(name: str, regex: str, topic: str) -> dict[str, str]:
    at = f"transforms.{name}"
    return {
        f"{at}.type": "org.apache.kafka.connect.transforms.RegexRouter",
        f"{at}.regex": regex,
        f"{at}.replacement": topic,
    }
