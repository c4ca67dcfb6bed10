"""Whether the user sees the triggers of a table: MySQL and MariaDB hide them from whoever lacks the
right TRIGGER."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from changes.model import TargetName

_GRANT = re.compile(
    r"GRANT (?P<rights>.*?) ON (?P<schema>\*|`(?:[^`]|``)*`)\.(?P<table>\S+|`.*?`) TO", re.ASCII
)
_NAMES_TRIGGER = re.compile(r"\b(TRIGGER|ALL PRIVILEGES)\b", re.ASCII)


def grants(rows: Callable[[str], Sequence[tuple[Any, ...]]]) -> list[str]:
    """What the user may do, by itself or by its roles. ``rows`` asks the server."""
    ((roles,),) = rows("SELECT CURRENT_ROLE()")
    using = f" FOR CURRENT_USER() USING {roles}" if "@" in str(roles) else ""
    return [line for (line,) in rows(f"SHOW GRANTS{using}")]


def sees_triggers(grants: Iterable[str], target: TargetName) -> bool:
    """Whether one of the lines of SHOW GRANTS gives the right for the target's table."""
    return any(_gives(line, target) for line in grants)


def _gives(line: str, target: TargetName) -> bool:
    found = _GRANT.match(line)
    if found is None or not _NAMES_TRIGGER.search(found["rights"]):
        return False
    whole = found["table"] == "*"
    schema = found["schema"] == "*" or _like(_name(found["schema"]), target.namespace, whole)
    return schema and (whole or _name(found["table"]) == target.table)


def _name(quoted: str) -> str:
    return quoted[1:-1].replace("``", "`")


def _like(pattern: str, name: str, may_match: bool) -> bool:
    """A schema's name is a pattern where the right is for all of its tables."""
    if not may_match:
        return pattern == name
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(one, re.escape(one[-1])) for one in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None
