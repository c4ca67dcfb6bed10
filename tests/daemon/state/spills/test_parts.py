"""What a stretch of the log holds when it is read again: messages that come in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from actors.contract.effects import LogRange, Spill
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode, TargetName
from changes.routes.routing import Route, Router
from daemon.state.spills.spills import PipelineSpills, whole_records
from offsets.position import TopicPartition
from sources.base.port import LogGone, LogRecord
from tests.changes.formats import protobuf_records as wire

SOURCE = TopicPartition("binlog", 0)
DTS = FORMATS["tencent-dts"](FormatOptions())
CANAL = FORMATS["canal-protobuf"](FormatOptions())


@dataclass
class Log:
    """The log as a list of values; running numbers as headers."""

    values: list[bytes]
    low: int = 0
    numbers: list[int] | None = None

    def read(self, _source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        if first < self.low:
            raise LogGone("it begins later")
        for offset, value in enumerate(self.values):
            if first <= offset <= last:
                ps = () if self.numbers is None else (("ps", b"%d" % self.numbers[offset]),)
                yield LogRecord(offset, None, value, ps, None)


def entry(number: int) -> bytes:
    columns = [wire.dts_column("id", "int(11)", key=True)]
    return wire.dts_rows(0, columns, [wire.dts_row((), [wire.dts_number(3, str(number))])])


def again(log: Log, first: int, last: int) -> list[tuple[int, list[int]]]:
    found = []
    for offset, value in whole_records(DTS, log, LogRange(SOURCE, first, last)):  # type: ignore[arg-type]
        changes = DTS.table_decoder(Mode.UPSERT, None).decode(0, [offset], [value])
        assert changes is not None
        found.append((offset, changes.table["id"].to_pylist()))
    return found


def test_a_message_that_began_before_its_stretch_is_read_whole() -> None:
    """Its place is that of its last part: nothing of it would be found from there on."""
    cut = wire.dts_parts(30, entry(2))
    log = Log([wire.dts_message(entry(1)), *cut, wire.dts_message(entry(3))])
    last = len(cut)
    assert again(log, last, last + 1) == [(last, [2]), (last + 1, [3])]


def test_parts_that_are_gone_are_told() -> None:
    """The quarantine can't keep what is nowhere; it must not go on without."""
    log = Log(wire.dts_parts(30, entry(2)), low=1)
    with pytest.raises(LogGone):
        again(log, 1, 9)


def test_what_was_sent_again_is_passed_over_again() -> None:
    """A part above all, which fits nowhere."""
    cut = wire.dts_parts(40, entry(1))
    assert len(cut) == 2
    log = Log([*cut, cut[1], wire.dts_message(entry(2))], numbers=[1, 2, 2, 3])
    assert again(log, 0, 3) == [(1, [1]), (3, [2])]


def test_of_a_message_of_several_tables_a_target_gets_its_own() -> None:
    """The rest belongs to targets that are well."""
    column = [wire.canal_column("id", "1", "int(11)", key=True)]
    entries = [wire.canal_rows("INSERT", [wire.canal_row((), column)], table) for table in "ab"]
    routes = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    log = Log([wire.canal_packet(*entries)])
    spills = PipelineSpills(None, log, CANAL, routes)  # type: ignore[arg-type]
    spill = Spill(TargetName("lake", "s", "b"), "why", (LogRange(SOURCE, 0, 0),), ())
    (record,) = spills._records(spill)
    assert CANAL.peek(record.value).table == ("s", "b")
    assert not record.ddl
