"""From a staged batch to the SQL text that writes it. Pure: no Spark, no catalog."""

from __future__ import annotations

from changes.sql.quoted import quoted

PLAIN_NAME = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.:,;/()#@="
)


def quote(name: str) -> str:
    """A name as an identifier of Spark SQL, whatever it holds."""
    return quoted(name, "`")


def dotted(*parts: str) -> str:
    """Names as one qualified identifier."""
    return ".".join(map(quote, parts))


def string_literal(text: str) -> str:
    """A string as a literal of Spark SQL: its value, sign by sign, whatever it holds."""
    return "'" + "".join(sign if sign in PLAIN_NAME else escape(sign) for sign in text) + "'"


def escape(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
