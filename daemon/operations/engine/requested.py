"""What a request for a job must have: checked before the job is recorded. Pure.

A request that its kind can't carry out would be recorded, begin, and fail, after it was answered
with success.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from changes.model.model import TargetName
from daemon.operations.engine.record import JobRequest
from settings.counted import counted

READS_ONLY = "verify"
"""The kind that writes nothing, unless it is to ``repair``."""


def written_by(wanted: JobRequest) -> Sequence[str]:
    """The targets that a job writes."""
    reads = wanted.kind == READS_ONLY and wanted.params.get("repair") is not True
    return () if reads else wanted.targets


def wrong_targets(wanted: JobRequest, most: int | None = None) -> Iterator[str]:
    """Why these are not the targets of one job, ``most`` of them at most."""
    if not wanted.targets:
        yield "no target is named"
    if most is not None and len(wanted.targets) > most:
        named = counted(len(wanted.targets), "target is", "targets are")
        yield f"{named} named, and it takes {most}"
    for target in wanted.targets:
        try:
            TargetName.parse(target)
        except ValueError as error:
            yield str(error)


def wrong_tables(wanted: JobRequest) -> Iterator[str]:
    """Why ``params["tables"]`` has not one ``database.table`` for each target."""
    yield from wrong_targets(wanted)
    tables = wanted.params.get("tables")
    if not isinstance(tables, list) or len(tables) != len(wanted.targets):
        yield '"tables" has not one table for each target'
        return
    for table in tables:
        if not isinstance(table, str) or not all(table.partition(".")):
            yield f"{table!r} is not of the form database.table"


def check(kind: str, wrong: Sequence[str]) -> None:
    """Raise ValueError where anything is wrong."""
    if wrong:
        raise ValueError(f"a {kind} can't be requested like this: {'; '.join(wrong)}")
