"""Tries with two tables what ``cuts.atomic`` needs of a catalog, before the daemon starts."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from actors.contract.ports import OneFailed
from changes.model.errors import LostRace, SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.sql.spark.schema import LakeColumn
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.direct import PendingUpdate, Update, publish_update
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.local_tables import HWM
from sparkwriter.iceberg.publish import MAIN
from sparkwriter.iceberg.refusals import explain
from sparkwriter.iceberg.together import Moves
from sparkwriter.session.java_api import JavaFailure

WAIT_S = 30.0
"""For a lock in the catalog: others' commits take milliseconds."""


class NotTogether(Exception):
    """What the catalog did instead: one line."""


def probe_together(spark: SparkSession, sink: str, properties: Mapping[str, str]) -> Iterator[str]:
    """Why two tables of an open JDBC catalog can't change in one transaction, if so.

    They change together, and neither does where somebody else was faster with one. Leaves nothing.
    """
    catalog, space = LakeCatalog(spark), f"binlogd_probe_{uuid.uuid4().hex}"
    names = [TargetName(sink, space, f"probe_{number}") for number in range(2)]
    why: str | None = None
    try:
        _try(catalog, names)
    except NotTogether as error:
        why = str(error)
    except OneFailed as error:
        why = str(error.__cause__)
    except (SinkUnavailable, TargetRefused) as error:
        why = str(error)
    except JavaFailure as error:
        why = explain(error, sink, properties)
    if why is not None:
        what = "its tables can't change in one transaction, as cuts.atomic needs"
        yield f"sink {sink}: {what}: {why}"
    try:
        _remove(catalog, names)
    except JavaFailure as error:
        yield f"sink {sink}: can't remove namespace {space}: {explain(error, sink, properties)}"


def _try(catalog: LakeCatalog, names: list[TargetName]) -> None:
    for name in names:
        catalog.create(name, [LakeColumn("probe", "int")], {}, (HWM, "0"))
    moves, heads = _written(catalog, names)
    moves.publish(WAIT_S)
    if _heads(catalog, names) != heads:
        raise NotTogether("a commit changed less than it should have")
    moves, _ = _written(catalog, names)
    other = _load(catalog, names[1])
    theirs = publish_update(other, heads[1], _update(other))
    try:
        moves.publish(WAIT_S)
    except OneFailed as error:
        moves.give_up()
        if not isinstance(error.__cause__, LostRace):
            raise
    if _heads(catalog, names) != [heads[0], theirs]:
        raise NotTogether("a commit that came too late for one table changed the other")


def _written(catalog: LakeCatalog, names: list[TargetName]) -> tuple[Moves, list[int]]:
    """A write of each, and the snapshots that they will be."""
    moves, heads = Moves(), []
    for name in names:
        table = _load(catalog, name)
        main = table.head(MAIN)
        assert main is not None
        heads.append(moves.keep(name, PendingUpdate(table, main, _update(table), None)))
    return moves, heads


def _update(table: LakeTable) -> Update:
    return Update(table.table.newFastAppend().set(HWM, "1"))


def _heads(catalog: LakeCatalog, names: list[TargetName]) -> list[int | None]:
    return [_load(catalog, name).head(MAIN) for name in names]


def _load(catalog: LakeCatalog, name: TargetName) -> LakeTable:
    table = catalog.load(name)
    if table is None:
        raise NotTogether(f"somebody removed {name}")
    return table


def _remove(catalog: LakeCatalog, names: list[TargetName]) -> None:
    """The tables, their namespace, and the folders that Iceberg leaves."""
    places = []
    for name in names:
        if (table := catalog.load(name)) is not None:
            if table.is_local:
                places.append(Path(urlsplit(str(table.metadata.location())).path).parent)
            catalog.remove(name)
    catalog.remove_namespace(names[0])
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
