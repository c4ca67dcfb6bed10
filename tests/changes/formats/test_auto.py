"""``format = "auto"``: which format a record is of, and records that carry their format's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from changes.formats import FORMATS, TopicFormats, make_format
from changes.formats.auto import AutoFormat
from changes.formats.engine.format import Confidence, Packed, mark_in, marked_name, pack, unpack
from changes.formats.recognise import confidences, recognised, unclear
from changes.model.model import BadMessage, BadRecord, FormatOptions, Kind, Mode, TableName
from tests.changes import conformance
from tests.changes.formats import protobuf_records as wire
from tests.changes.formats.cases import NAMED
from tests.changes.formats.debezium.messages import dumps
from tests.changes.formats.json_messages import ogg
from tests.changes.formats.own_records import BY_NAME_ALONE, CANAL, ENTRY, FLAT, OWN, ROWS

TABLE = TableName("shop", "orders")

UNDECIDED = [
    ("a tombstone", Packed(b'{"id":1}', None)),
    ("an empty value", Packed(None, b"")),
    ("a null", Packed(None, b"null")),
    ("a bare row", Packed(None, dumps(FLAT))),
    ("a time alone", Packed(None, b'{"ts_ms":1}')),
    ("text", Packed(None, b"hello")),
    ("a list", Packed(None, b"[1]")),
    ("zeros", Packed(None, b"\0\0")),
    ("zeros that are a record", Packed(None, bytes(15))),
    ("another format", Packed(None, b'{"messageType":"INSERT","columns":[],"schemaName":"s"}')),
]


@pytest.mark.parametrize(
    ("name", "found"),
    [pytest.param(n, r, id=f"{n}: {what}") for n, all_ in OWN.items() for what, r in all_],
)
def test_each_format_knows_its_own(name: str, found: Packed) -> None:
    """Rows, statements, marks of the stream, and what others write of its form."""
    expected = {"debezium": "debezium-json"} | dict.fromkeys(BY_NAME_ALONE - {"debezium"})
    assert recognised(confidences(found)) == expected.get(name, name)


@pytest.mark.parametrize("found", [pytest.param(r, id=what) for what, r in UNDECIDED])
def test_what_tells_nothing_is_not_guessed(found: Packed) -> None:
    """It may be one format's or the other's: the next record may tell."""
    assert recognised(confidences(found)) is None


def test_two_that_are_equally_sure_are_none() -> None:
    """The order in which formats are listed must not choose."""
    assert recognised({"a": Confidence.LIKELY, "b": Confidence.LIKELY}) is None
    assert recognised({"a": Confidence.CERTAIN, "b": Confidence.LIKELY}) == "a"
    assert recognised({"a": Confidence.OPEN}) is None


def test_members_of_an_unwrapped_row_may_be_called_as_another_formats() -> None:
    """A table may have columns type and data; what makes the row Debezium's is surer."""
    row = {"type": "INSERT", "data": [1], "sql": "x", "__op": "c", "__table": "outbox"}
    assert recognised(confidences(Packed(None, dumps(row)))) == "debezium-json"


FOLDERS = {
    "flink/canal": "canal-json", "flink/debezium": "debezium-json",
    "flink/maxwell": "maxwell-json", "flink/ogg": "ogg-json", "inlong": "canal-json",
    "maxwell/json": "maxwell-json", "paimon": "debezium-json",
    "debezium-docs": "debezium-json",
}  # fmt: skip


def _samples() -> Iterator[Any]:
    patterns = ["flink/*.txt", "inlong/*.txt", "maxwell/json/*.json", "paimon/**/*.txt"]
    for case in conformance.cases(*patterns, "debezium-docs/*.json"):
        if case.id and not case.id.endswith("_key.json"):
            yield case


@pytest.mark.parametrize("path", list(_samples()))
def test_samples_of_others_are_recognised(path: Path) -> None:
    """Every message of every file, by itself."""
    place = str(path.relative_to(conformance.folder()))
    (name,) = {told for folder, told in FOLDERS.items() if place.startswith(folder)}
    content = path.read_bytes()
    whole = [content] if path.suffix == ".json" else content.splitlines()
    values = [each for each in whole if each.lstrip().startswith(b"{")]
    assert values
    assert {recognised(confidences(Packed(None, value))) for value in values} == {name}


@pytest.mark.parametrize("path", conformance.cases("synthetic-vectors/*.json"))
def test_vectors_of_others_are_recognised(path: Path) -> None:
    """Each record, parts of a message too, with its headers."""
    conformance.folder()
    name = "canal-protobuf" if path.name.startswith("canal") else "tencent-dts"
    for each in json.loads(path.read_text())["records"]:
        headers = [(key, value.encode()) for key, value in each["headers"].items()]
        told = Packed(None, bytes.fromhex(each["value_hex"]), headers)
        assert recognised(confidences(told)) == name


def test_an_error_tells_what_came_and_what_it_may_be() -> None:
    """Names of members and sizes, but no values: rows are nobody's business."""
    told = unclear([Packed(None, dumps(FLAT)), Packed(None, b"\1secret"), Packed(b"k", None)])
    assert "an object of id, name (1)" in told
    assert "7 bytes that begin with 01 73 65" in told
    assert "no value (1)" in told
    assert "debezium-json (1)" in told


def auto(name: str, **extra: str) -> AutoFormat:
    """The format of topic ``t``, told."""
    return AutoFormat(FormatOptions(extra=extra), TopicFormats({"t": name}))


def marked(format_: AutoFormat, found: Packed) -> bytes:
    return format_.marked("t", pack(*found))


@pytest.mark.parametrize("name", FORMATS)
def test_a_marked_record_is_read_as_its_format_does(name: str) -> None:
    """The same head, the same rows, whether the format is keyed or not."""
    found = OWN[name][0][1]
    format_, alone = auto(name, **NAMED), FORMATS[name](FormatOptions(extra=NAMED))
    plain = pack(*found) if alone.keyed else found.value
    value = marked(format_, found)
    assert plain is not None
    assert list(format_.heads([value])) == list(alone.heads([plain]))
    assert format_.explain(value) == alone.explain(plain)
    told, wanted = (f.table_decoder(Mode.UPSERT, ("id",)) for f in (format_, alone))
    mine, others = told.decode(0, [5], [value]), wanted.decode(0, [5], [plain])
    assert mine is not None
    assert others is not None
    assert mine.table.equals(others.table)
    assert told.schema == wanted.schema


def test_a_marked_record_is_the_record_still() -> None:
    """A dead letter of it has the original key, value and headers."""
    found = Packed(b"k", b"v", [("h", b"1")])
    value = marked(auto("canal-json"), found)
    assert unpack(value) == Packed(b"k", b"v", [("h", b"1")])
    assert marked_name(mark_in(value)) == "canal-json"


def test_a_message_of_several_entries_is_taken_apart_and_joined() -> None:
    """What each target gets is marked as the whole was."""
    format_ = auto("canal-protobuf")
    other = wire.canal_rows("INSERT", [], table="u")
    value = marked(format_, Packed(b"k", wire.canal_packet(ENTRY, other), [("h", b"1")]))
    assert format_.peek(value).kind is Kind.MULTI_ENTRY
    first, second = format_.entries(value)
    assert (first.table, second.table) == (TableName("s", "t"), TableName("s", "u"))
    part = format_.joined(value, [first.data])
    assert format_.peek(part) == (Kind.ROWS, TableName("s", "t"))
    assert unpack(part).key == b"k"


def test_parts_are_put_together() -> None:
    """Of a format that has none, no record is one."""
    format_ = auto("tencent-dts")
    values = [marked(format_, Packed(None, each)) for each in wire.dts_parts(20, ROWS)]
    found = [format_.part(value) for value in values]
    whole = format_.reassembled(values[-1], b"".join(each[1].data for each in found if each))
    assert format_.peek(whole) == (Kind.ROWS, TableName("s", "t"))
    assert format_.comes_in_parts(values)
    canal = auto("canal-json")
    value = marked(canal, Packed(None, dumps(CANAL)))
    assert canal.part(value) is None
    assert not canal.comes_in_parts([value])


def test_another_formats_message_is_bad_and_no_row() -> None:
    """Also where a default table is configured."""
    names = {"default_database": "shop", "default_table": "orders"}
    format_ = auto("debezium-json", **names)
    row = Packed(None, dumps(FLAT | {"__op": "c"}))
    assert format_.peek(marked(format_, row)) == (Kind.ROWS, TABLE)
    with pytest.raises(BadMessage, match=r"a message of canal-json in a topic of debezium-json"):
        format_.peek(marked(format_, Packed(None, dumps(CANAL))))


@pytest.mark.parametrize(("name", "other"), list(permutations(FORMATS, 2)))
def test_a_topic_that_changes_its_format_gives_bad_messages(name: str, other: str) -> None:
    """Never rows: what was told once is not told anew."""
    if {name, other} in ({"debezium", "debezium-json"}, {"upsert", "upsert-json"}):
        return  # the same records
    format_ = auto(name)
    for what, found in OWN[other]:
        if not found.value or "transaction" in what or "heartbeat" in what:
            continue  # says nothing, whosever it is
        with pytest.raises(BadMessage):
            format_.peek(marked(format_, found))


def test_a_table_takes_rows_of_one_format() -> None:
    """Two topics of two formats in one table: the second one's record is refused."""
    canal, mine = auto("canal-json"), auto("ogg-json")
    decoder = canal.table_decoder(Mode.APPEND, None)
    assert decoder.schema is None
    good = marked(canal, Packed(None, dumps(CANAL)))
    assert decoder.decode(0, [1], [good]) is not None
    with pytest.raises(BadRecord, match="a record of ogg-json in a table that was filled from"):
        decoder.decode(1, [1, 2], [good, marked(mine, Packed(None, ogg("I", {"id": 1})))])


def test_the_positions_are_those_of_the_configuration() -> None:
    """Before the first record nobody knows whose they are, and targets are made by then."""
    decoder = auto("canal-json", positions="tidb-commit-ts").table_decoder(Mode.UPSERT, None)
    assert decoder.positions == "tidb-commit-ts"
    assert auto("canal-json").table_decoder(Mode.UPSERT, None).positions is None


def test_options_that_one_format_has_leave_the_others_out() -> None:
    """It says why, when it comes to a topic of theirs."""
    format_ = auto("ogg-json", positions="postgres-lsn")
    assert format_.problem("debezium-json") is None
    assert format_.problem("ogg-json") == "ogg-json gives no positions"
    with pytest.raises(BadMessage, match="ogg-json gives no positions"):
        format_.peek(marked(format_, Packed(None, ogg("I", {"id": 1}))))


def test_options_that_none_can_meet_are_refused() -> None:
    """At the start, as for any format."""
    with pytest.raises(ValueError, match="Nowhere"):
        make_format("auto", FormatOptions(time_zone="Nowhere"))


def test_a_topics_format_never_changes() -> None:
    """To tell it otherwise is an error of ours."""
    topics = TopicFormats()
    assert topics.of("t") is None
    topics.choose("t", "ogg-json")
    topics.choose("t", "ogg-json")
    with pytest.raises(ValueError, match="ogg-json already"):
        topics.choose("t", "canal-json")
