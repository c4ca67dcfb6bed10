"""Decides how sure it is that a record is Debezium's, for ``format = "auto"``."""

from __future__ import annotations

from changes.formats.debezium.parts import NEW_KEY, OLD_KEY, WRAPPED, side_topic
from changes.formats.debezium.record import MARKS, is_envelope
from changes.formats.engine.format import Confidence, Packed
from changes.formats.engine.heads import foreign
from changes.formats.engine.json_text import Members, is_empty, is_list, members, word
from changes.formats.engine.layout import Refused

_OPS = frozenset("crudtm")


def confidence_of(record: Packed) -> Confidence:
    """Envelopes and records of the side topics are recognised by their members.

    A row without an envelope is recognised by members that are no columns, or by its schema. A
    tombstone whose key has no schema may be of any format: ``Confidence.OPEN``.
    """
    if any(name in (OLD_KEY, NEW_KEY) for name, _ in record.headers):
        return Confidence.CERTAIN
    if is_empty(record.value):
        return _of_tombstone(record.key)
    top = members(record.value)
    if not top or (foreign(top) is not None and not top.keys() & MARKS):
        return Confidence.NO
    if not ("payload" in top and top.keys() <= WRAPPED):
        return _of_payload(top, record.key)
    if is_empty(bytes(top["payload"])):
        return _of_tombstone(record.key)
    payload = members(top["payload"])
    if not payload:
        return Confidence.NO
    found = _of_payload(payload, record.key)
    # Made by Connect's own converter: only this format has such schemas.
    typed = is_list(members(top.get("schema")), "fields")
    return max(found, Confidence.LIKELY) if typed else found


def _of_tombstone(key: bytes | None) -> Confidence:
    found = members(key)
    if not ("payload" in found and found.keys() <= WRAPPED):
        return Confidence.OPEN
    named = word(members(found.get("schema")), "name").endswith(".Key")
    return Confidence.CERTAIN if named else Confidence.LIKELY


def _of_payload(found: Members, key: bytes | None) -> Confidence:
    if word(found, "op").lower() in _OPS and is_envelope(found):
        source = members(found.get("source"))
        known = source.keys() & {"connector", "db", "table", "lsn", "file"}
        return Confidence.CERTAIN if known else Confidence.LIKELY
    if found.keys() & MARKS:
        return Confidence.CERTAIN if found.keys() & {"__op", "__deleted"} else Confidence.LIKELY
    if "ddl" in found and found.keys() & {"databaseName", "tableChanges"}:
        return Confidence.CERTAIN
    return _of_side_topic(found, key)


def _of_side_topic(found: Members, key: bytes | None) -> Confidence:
    try:
        side = side_topic(found, None)
    except Refused:
        return Confidence.LIKELY  # debezium-json itself says why it can't be read
    if side == "heartbeat":
        inner = members(key)
        inner = members(inner["payload"]) if "payload" in inner else inner
        return Confidence.LIKELY if "serverName" in inner else Confidence.OPEN
    if side is None:
        return Confidence.NO
    return Confidence.LIKELY
