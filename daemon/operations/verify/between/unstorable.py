"""Values that a database does not hold, where its sink stores NULL instead (``unstorable``). Pure.

``sparkwriter.sql.base.values`` has the rule; here it is one of canonical texts.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from changes.sql.forms import Form
from databases.base.port import Texts

_DATED = (Form.DATE, Form.LOCAL, Form.INSTANT)
_OF_A_YEAR = re.compile(r"(?!0000)\d{4}-", re.ASCII)

_WHAT = {
    "postgresql": "the character NUL, years outside 1 to 9999",
    "mysql": "NaN and infinite numbers, years outside 1 to 9999",
    "mariadb": "NaN and infinite numbers, -0.0, years outside 1 to 9999",
}
"""By kind of database what it does not hold, for people."""


def holds(kind: str, form: Form | None, text: str) -> bool:
    """Whether a database holds a value."""
    if form is Form.TEXT:
        return kind != "postgresql" or "\0" not in text
    if form in _DATED:
        return _OF_A_YEAR.match(text) is not None
    if form is not Form.BITS or kind == "postgresql":
        return True
    (number,) = struct.unpack(">d", struct.pack(">q", int(text)))
    if number - number != 0:
        return False
    return kind != "mariadb" or int(text) != -(1 << 63)


@dataclass(frozen=True, slots=True)
class Nulls:
    """What two rows are compared by. ``kinds``: of each side its database, where its sink stores
    NULL for what that does not hold; ``forms``: of each compared column."""

    kinds: tuple[str | None, str | None]
    forms: tuple[Form | None, ...]

    def alike(self, first: Texts | None, second: Texts | None) -> bool:
        """Whether two rows are equal but for NULLs in place of such values."""
        if first is None or second is None:
            return first is second
        return all(
            one == other or self._stands_for(0, form, one, other)
            or self._stands_for(1, form, other, one)
            for form, one, other in zip(self.forms, first, second, strict=True)
        )  # fmt: skip

    def _stands_for(self, side: int, form: Form | None, null: str | None, text: str | None) -> bool:
        kind = self.kinds[side]
        if kind is None or null is not None or text is None:
            return False
        return not holds(kind, form, text)

    def notes(self, names: tuple[str, str]) -> list[str]:
        """What is not compared because of it, one line each."""
        return [
            f'not compared: what {name} has NULL for (unstorable = "null"): {_WHAT[kind]}'
            for name, kind in zip(names, self.kinds, strict=True)
            if kind is not None
        ]
