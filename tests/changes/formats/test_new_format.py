"""The format that docs/formats.md makes as an example: as it stands there, it works."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from changes.formats import FORMATS, TopicFormats
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Format, Packed, pack
from changes.formats.recognise import confidences, recognised
from changes.model.model import BadMessage, FormatOptions, Kind, Mode, TableName
from tests.changes.formats.mutator import mutants, read
from tests.changes.formats.own_records import BY_NAME_ALONE, OWN

DOCS = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
NAME = "plain-json"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Format:
    """The module of the example and its one line in the registry, for one test."""
    (code,) = re.findall(r"```python\n(\"\"\"Plain JSON.*?)```", DOCS.read_text(), re.DOTALL)
    module = types.ModuleType("plain_json")
    monkeypatch.setitem(sys.modules, "plain_json", module)  # where its annotations are looked up
    exec(compile(code, str(DOCS), "exec"), module.__dict__)
    monkeypatch.setitem(FORMATS, NAME, module.PlainJson)
    return FORMATS[NAME](FormatOptions())


def message(op: str = "insert", row: Any = None, **members: Any) -> bytes:
    told = {"db": "shop", "table": "orders", "op": op, "key": ["id"], "row": row or {"id": 1}}
    return json.dumps(told | members).encode()


def test_rows_become_columns(made: Format) -> None:
    """Inserts, an update that changes the key, a delete."""
    values = [
        message(row={"id": 1, "name": "a"}),
        message("update", {"id": 2, "name": "b"}, old={"id": 1}),
        message("delete", {"id": 3}),
    ]
    assert {made.peek(value) for value in values} == {(Kind.ROWS, TableName("shop", "orders"))}
    changes = made.table_decoder(Mode.UPSERT, None).decode(0, [1, 2, 3], values)
    assert changes is not None
    assert changes.schema.keys == ("id",)
    rows = [(r["__binlogd_op"], r["id"], r["name"]) for r in changes.table.to_pylist()]
    assert rows == [("U", "1", "a"), ("D", "1", None), ("U", "2", "b"), ("D", "3", None)]


def test_people_are_told(made: Format) -> None:
    """As ``binlogd decode`` does."""
    (change,) = made.explain(message("update", {"id": 2, "name": "b"}, old={"name": "a"}))
    assert (change.op, change.key, change.before) == ("U", {"id": 2}, {"id": 2, "name": "a"})  # type: ignore[union-attr]


def test_damaged_messages_are_refused(made: Format) -> None:
    """Nothing else comes out; an empty one is a tombstone."""
    samples = [message(row={"id": 1, "name": "a"}), message("update", {"id": 2}, old={"id": 1})]
    outcomes = {read(made, value) for value in mutants(samples, 500, seed=3)}
    assert outcomes == {"rows", "refused", "nothing"}


def test_it_is_told_from_its_messages(made: Format) -> None:
    """And the others are told from theirs as before."""
    assert recognised(confidences(Packed(None, message()))) == NAME
    for name in OWN.keys() - BY_NAME_ALONE:
        assert {recognised(confidences(record)) for _, record in OWN[name]} == {name}
    auto = AutoFormat(FormatOptions(), TopicFormats({"t": NAME}))
    assert auto.peek(auto.marked("t", pack(None, message()))).kind is Kind.ROWS
    with pytest.raises(BadMessage, match="a message of ogg-json in a topic of plain-json"):
        auto.peek(auto.marked("t", pack(*OWN["ogg-json"][0][1])))
