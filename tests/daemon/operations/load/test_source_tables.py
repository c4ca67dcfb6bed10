"""What of a source's table can be loaded into its target, and what is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.model.model import Column, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import Shape
from changes.sql.forms import Form
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.load.columns import FittedTable, fitted
from daemon.operations.load.source_tables import format_name
from databases.base.errors import DatabaseRefused
from databases.base.port import SourceColumn, SourceTable
from tests.daemon.operations.test_automatic_loads import config

ROUTE = TargetRoute(TargetName("lake", "s", "t"), Mode.UPSERT, None)
TABLE = SourceTable(
    TableName("s", "t"),
    (
        SourceColumn("ID", "int(11)", False, Form.WHOLE),
        SourceColumn("name", "varchar(9)", True, Form.TEXT),
    ),
    ("ID",),
    10,
    100,
    "d",
)


def fit(
    folder: Path,
    table: SourceTable = TABLE,
    route: TargetRoute = ROUTE,
    present: TableSchema | None = None,
    **pipeline: Any,
) -> FittedTable:
    settings = PipelineConfig(config(folder, **pipeline), "p")
    return fitted(settings, table, route, settings.section.format, present)


def schema(type_: pa.DataType, key: str = "ID") -> TableSchema:
    return TableSchema((Column("ID", type_), Column("name", pa.string())), (key,))


def test_columns_are_those_of_the_stream(tmp_path: Path) -> None:
    """Under the source's names."""
    assert fit(tmp_path).schema == schema(pa.int32())


def test_the_present_targets_types_stay(tmp_path: Path) -> None:
    """A wider one was made by an earlier change."""
    assert fit(tmp_path, present=schema(pa.int64())).schema == schema(pa.int64())


def test_configured_keys_are_spelled_as_the_source_does(tmp_path: Path) -> None:
    """Columns have one name."""
    assert fit(tmp_path, route=replace(ROUTE, keys=("id",))).keys == ("ID",)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"route": replace(ROUTE, mode=Mode.APPEND)}, "is a changelog"),
        ({"route": replace(ROUTE, shape=Shape(history=True))}, "history: the database"),
        ({"route": replace(ROUTE, keys=("name",))}, "another one than its target"),
        ({"table": replace(TABLE, keys=())}, "has no key"),
        ({"present": schema(pa.int32(), "name")}, "has the key name"),
        ({"present": schema(pa.date32())}, "date"),
        ({"positions": "tidb-commit-ts"}, "keeps source positions"),
        (
            {
                "table": replace(
                    TABLE, columns=(replace(TABLE.columns[0], form=None, refused="no"),)
                )
            },
            "column ID: no",
        ),
    ],
)
def test_what_can_not_be_exact_is_refused(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    """By name, before anything is begun."""
    with pytest.raises(DatabaseRefused, match=why):
        fit(tmp_path, **more)


def test_a_format_that_is_not_known_yet_is_waited_for(tmp_path: Path) -> None:
    """Its values decide what a load has to store."""
    settings = config(tmp_path, format="auto")
    assert format_name(PipelineConfig(settings, "p"), {"binlog": "canal-json"}) == "canal-json"
    for formats in ({}, {"a": "canal-json", "b": "maxwell-json"}):
        with pytest.raises(DatabaseRefused, match="not known yet"):
            format_name(PipelineConfig(settings, "p"), formats)
