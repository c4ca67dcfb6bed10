"""Finds the message that was asked for: by its offset, or by its transaction."""

from __future__ import annotations

from dataclasses import dataclass

from changes.formats.engine.format import Format
from daemon.cli.topics.stretch import NotThere
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from sources.base.consumed import as_consumed
from sources.base.port import LogRecord
from sources.base.topics import TopicLog


@dataclass(frozen=True, slots=True)
class Sought:
    """One of ``offset``, ``gtid`` and ``lsn``."""

    source: TopicPartition
    offset: int | None = None
    gtid: str | None = None
    lsn: int | None = None


def located(
    log: TopicLog, sought: Sought, format_: Format | None, frontier: int
) -> tuple[int, LogRecord | None]:
    """The offset, and the record there; None where the log has removed it. ``frontier``: what is
    recorded. Raises NotThere, and what the log raises."""
    source, questions = sought.source, log.questions()
    whole = questions.watermarks([source])[source]
    if frontier > whole.high:
        raise NotThere(
            f"{source} ends at {whole.high}, the committed position is {frontier}: the log was cut "
            "or replaced, so its offsets may be those of other messages now"
        )
    bounds = Watermarks(whole.low, questions.committed_ends([source])[source])
    if sought.offset is not None:
        return _at(log, source, sought.offset, bounds)
    if format_ is None:
        raise NotThere(f"{source}: the format of its records is not known, so neither their place")
    found = _newest(log, sought, bounds, format_)
    return found.offset, found


def _at(
    log: TopicLog, source: TopicPartition, offset: int, bounds: Watermarks
) -> tuple[int, LogRecord | None]:
    if offset >= bounds.high:
        raise NotThere(f"{source} has no offset {offset} yet: it ends at {bounds.high}")
    if offset < bounds.low:
        return offset, None
    return offset, next(iter(log.reader().read(source, offset, offset)), None)


def _newest(log: TopicLog, sought: Sought, bounds: Watermarks, format_: Format) -> LogRecord:
    """The last record of the transaction, or at or below the LSN. Reads the whole partition: a
    source's log may have been sent again."""
    source, found, told = sought.source, None, False
    if bounds.low < bounds.high:
        for record in log.reader().read(source, bounds.low, bounds.high - 1):
            value = as_consumed(format_, source.topic, record)
            if sought.lsn is None:
                names = format_.transactions_of(value) or ()
                told |= bool(names)
                found = record if sought.gtid in names else found
            elif (place := format_.place(value)) is not None and place.lsn is not None:
                told = True
                found = record if place.lsn <= sought.lsn else found
    if found is not None:
        return found
    what = f"GTID {sought.gtid}" if sought.lsn is None else f"LSN {sought.lsn} or below"
    of = f"offsets {bounds.low} to {bounds.high - 1}" if bounds.low < bounds.high else "no record"
    if not told:
        raise NotThere(f"{source}: no record tells its {what.split()[0]} ({of})")
    raise NotThere(f"{source} holds no record with {what}: it has {of}")
