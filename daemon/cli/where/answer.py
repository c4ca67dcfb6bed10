"""What is known of one message: its targets, and how far it has come on its way into each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from changes.formats.engine.format import Format, pack
from changes.model.model import BadMessage, Kind, TargetName
from changes.routes.routing import RouteConflict, Router
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.replay.keys import affected_targets
from daemon.state.command_schemas import CommandSchemas
from daemon.state.dead_letters.index import indexes
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from offsets.where import Reached, Whereabouts, targets_of, whereabouts
from sources.base.consumed import as_consumed
from sources.base.port import LogRecord
from sparkwriter.kit.queries import NoAnswer, Since
from sparkwriter.sections import make_sink


@dataclass(frozen=True, slots=True)
class Meant:
    """Which targets a message is for. ``why``: of none, in one line; ``unread``: that is because it
    can't be read."""

    targets: tuple[str, ...]
    why: str = ""
    unread: bool = False


@dataclass(frozen=True, slots=True)
class InTarget:
    """``since``: the first version that holds it, None where that is not known, ``unknown`` says
    why."""

    target: str
    found: Whereabouts
    since: Since | None = None
    unknown: str = ""


def meant(
    format_: Format, router: Router, schemas: CommandSchemas | None, topic: str, record: LogRecord
) -> Meant:
    """The targets that a record is for, as the fetcher has it. Raises StoreError."""
    packed = pack(record.key, record.value, record.headers)
    if schemas is not None and (missing := schemas.fetch([packed])):
        return Meant((), "; ".join(missing), unread=True)
    value = as_consumed(format_, topic, record)
    try:
        found = affected_targets(format_, router, value)
        names = tuple(dict.fromkeys(each.target for each in found))
        return Meant(names) if names else Meant((), _why_none(format_, router, value))
    except (BadMessage, RouteConflict) as error:
        return Meant((), f"it can't be read: {error}", unread=True)


def _why_none(format_: Format, router: Router, value: bytes | None) -> str:
    kind, table = format_.peek(value)
    if kind is Kind.PASSED_OVER and value is not None:
        return f"passed over: {format_.why_passed_over(value)}"
    if kind is Kind.ROWS and table is not None:
        return f"no route takes {table}" if (why := router.left_out(table)) is None else why
    return "no route takes what it is of" if kind is not Kind.NOTHING else "it carries no change"


def letters_of(
    pipeline: PipelineConfig, source: TopicPartition, offset: int, redact: Callable[[str], str]
) -> Mapping[str, str]:
    """By target the state of the message's dead letter; of the empty name one for no single
    target. Damage is reported on standard error. Raises Unreadable."""
    (index,) = indexes([pipeline], redact)
    return {target or "": state for target, state in index.at(source, offset).items()}


def in_targets(
    settings: Config,
    recorded: Snapshot,
    source: TopicPartition,
    offset: int,
    targets: Mapping[str, None],
    letters: Mapping[str, str],
) -> Iterator[InTarget]:
    """Where the message is, for each of these targets and what is filled instead of one."""
    for target in targets_of(recorded, targets):
        found = whereabouts(recorded, source, offset, target, letters)
        if found.stage is not Reached.APPLIED:
            yield InTarget(target, found)
            continue
        yield _applied(settings, target, source, offset, found)


def _applied(
    settings: Config, target: str, source: TopicPartition, offset: int, found: Whereabouts
) -> InTarget:
    """Since when, where its sink keeps former versions that can be read here."""
    name = TargetName.parse(target)
    section = settings.sink.get(name.sink)
    if section is None or not section.tags:
        return InTarget(target, found)
    queries = make_sink(name.sink, section, settings).queries()
    if queries is None:
        return InTarget(target, found)
    try:
        since = queries.since(name, source, offset)
    except NoAnswer as error:
        return InTarget(target, found, unknown=str(error))
    if since is None:
        line = f"{found.line} by the record, not in the table: it was rolled back or recreated"
        return InTarget(target, Whereabouts(Reached.WAITING, line, lacks=True))
    return InTarget(target, found, since)
