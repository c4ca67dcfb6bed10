"""The condition of a partition: what it means, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from changes.model.model import Column, Mode, TableName, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import Shape
from changes.sql.forms import Form
from daemon.operations.load.columns import FittedTable, streamed_of
from daemon.operations.verify.columns import NotComparable, shape_by_values, shape_of
from daemon.operations.verify.job.operation import VerifyOperation
from daemon.operations.verify.partition import Partition, PartitionBounds, bounds_of
from daemon.operations.verify.report import result_of, summary, table_result
from daemon.operations.verify.result_table import print_result
from daemon.operations.verify.work import Table
from daemon.state.edits import EditRefused
from databases.base.port import SourceColumn, SourceTable
from databases.mysql.sql import MySqlWords

SOURCE = SourceTable(
    TableName("shop", "t"),
    (
        SourceColumn("id", "bigint", False, Form.WHOLE),
        SourceColumn("created", "datetime(6)", True, Form.LOCAL),
        SourceColumn("paid", "timestamp", True, Form.INSTANT),
        SourceColumn("Day", "date", True, Form.DATE),
        SourceColumn("kind", "varchar(9)", True, Form.TEXT),
        SourceColumn("later", "date", True, Form.DATE),
    ),
    ("id",), 10, 1000, "d1",
)  # fmt: skip
TARGET = TableSchema(
    (
        Column("id", pa.int64()),
        Column("created", pa.timestamp("us")),
        Column("paid", pa.timestamp("us", "UTC")),
        Column("day", pa.date32()),
        Column("kind", pa.string()),
        Column("kept", pa.date32()),
    ),
    ("id",),
)


def part(condition: str, **shape: Any) -> PartitionBounds:
    """Of the two tables, by Canal, with a route's shape."""
    route = TargetRoute(TargetName("lake", "shop", "t"), Mode.UPSERT, None, shape=Shape(**shape))
    streamed = streamed_of(SOURCE, route, "mysql", "canal-json", None)
    wanted = FittedTable(SOURCE, streamed.columns, route, SOURCE.keys, None)
    if shape:
        compared = shape_by_values(SOURCE, streamed, wanted.schema, wanted.schema)
    else:
        compared = shape_of(SOURCE, streamed, TARGET)
    return bounds_of(Partition.parse(condition), compared, wanted)


@pytest.mark.parametrize(
    ("condition", "name", "first", "end"),
    [
        ("created=2026-11-25", "created", "2026-11-25 00:00:00.000000",
         "2026-11-26 00:00:00.000000"),
        ("CREATED=2026-11-25T08:30..2026-11-25 08:30:00.5", "created",
         "2026-11-25 08:30:00.000000", "2026-11-25 08:30:00.500000"),
        ("created=2024-02-29..2024-02-29T00:00:00.000001", "created",
         "2024-02-29 00:00:00.000000", "2024-02-29 00:00:00.000001"),
        ("day=2026-12-31", "day", "2026-12-31", "2027-01-01"),
        ("day=0001-01-01..9999-12-31", "day", "0001-01-01", "9999-12-31"),
        ("paid=2026-11-25Z", "paid", "2026-11-25 00:00:00.000000", "2026-11-26 00:00:00.000000"),
        ("paid=2026-11-25+08:00", "paid", "2026-11-24 16:00:00.000000",
         "2026-11-25 16:00:00.000000"),
        ("paid=2026-11-25-03:30", "paid", "2026-11-25 03:30:00.000000",
         "2026-11-26 03:30:00.000000"),
        # The day of 25 hours on which Berlin's summer ends: each end has its own offset.
        ("paid=2026-10-25+02:00..2026-10-26+01:00", "paid", "2026-10-24 22:00:00.000000",
         "2026-10-25 23:00:00.000000"),
    ],
)  # fmt: skip
def test_what_a_condition_means(condition: str, name: str, first: str, end: str) -> None:
    """From its beginning on, below its end; an instant's zone is said."""
    found = part(condition)
    assert (found.pair.name, found.first, found.end) == (name, first, end)


@pytest.mark.parametrize(
    ("condition", "end"),
    [
        ("created=9999-12-31", "created <= TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"),
        ("day=9999-12-31", "day <= DATE'9999-12-31'"),
        ("paid=9999-12-31Z", "paid <= TIMESTAMP'9999-12-31 23:59:59.999999Z'"),
        ("paid=9999-12-31-05:00", "paid <= TIMESTAMP'9999-12-31 23:59:59.999999Z'"),
        ("paid=9999-12-31+08:00", "paid < TIMESTAMP'9999-12-31 16:00:00.000000Z'"),
        ("created=9999-12-30", "created < TIMESTAMP_NTZ'9999-12-31 00:00:00.000000'"),
    ],
)
def test_the_last_day_that_there_is_has_its_end(condition: str, end: str) -> None:
    """Many tables have it for rows without an end, and no day comes behind it."""
    found = part(condition)
    assert found.lake.replace("`", "").endswith(f" AND {end}")
    sign = "<=" if "<=" in end else "<"
    text = MySqlWords().between(found.column, found.first, found.end, found.below)
    assert f"` {sign} " in text
    assert found.end in text


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("created", "is not COLUMN=DAY or COLUMN=FROM..TO"),
        ("=2026-11-25", "is not COLUMN=DAY"),
        ("created=", "'' is neither a day such as"),
        ("created=2026-11-25T00:00", "is one moment: write the range as FROM..TO"),
        ("created=2026-11-31", "day is out of range for month"),
        ("created=20261125", "'20261125' is neither a day"),
        ("created=2026-W48-3", "is neither a day"),
        ("created=2026-11-25T00:00:00.0000001..2026-11-26", "is neither a day"),
        ("created=2026-11-25T24:00..2026-11-27", "hour must be in"),
        ("created=2026-11-25Z..2026-11-26", "one end has a zone, the other has none"),
        ("created=2026-11-26..2026-11-25", "its end is not behind its beginning"),
        ("created=2026-11-25..2026-11-25", "its end is not behind its beginning"),
        ("paid=2026-11-25+08:00..2026-11-24T16:00Z", "its end is not behind its beginning"),
        ("created=0000-01-01", "year 0 is out of range"),
        ("paid=0001-01-01+08:00", "not in the years 1 to 9999"),
        ("created=٢026-11-25", "is neither a day"),
        ("created=2026-11-25..2026-11-26 OR 1=1", "is neither a day"),
    ],
)
def test_what_is_no_condition_is_refused(condition: str, said: str) -> None:
    """By the command, before a job is recorded: nothing is guessed, no digit is dropped."""
    with pytest.raises(EditRefused) as refused:
        VerifyOperation.params(targets=["*"], partition=condition)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("paid=2026-11-25", "holds instants.*give the zone, such as 2026-11-25Z or"),
        ("created=2026-11-25Z", "holds times of no zone: leave the zone out"),
        ("day=2026-11-25Z", "holds times of no zone: leave the zone out"),
        ("day=2026-11-25T00:00..2026-11-26", "is a date: give days alone"),
        ("kind=2026-11-25", "is stored as string: a partition is a range of a date"),
        ("id=2026-11-25", "is stored as long"),
        ("nothing=2026-11-25", "no column nothing of the target is compared$"),
        ("later=2026-11-25", "no column later of the target is compared$"),
        ("kept=2026-11-25", "no column kept of the target is compared$"),
    ],
)
def test_a_column_that_does_not_fit_leaves_the_table_uncompared(condition: str, said: str) -> None:
    """A column that one side lacks, or whose type has no days, or whose zone is not known."""
    with pytest.raises(NotComparable, match=said):
        part(condition)


def test_a_route_that_renames_is_named_by_the_target() -> None:
    """The source is asked by its own name; who gives that one is told the other."""
    found = part("made=2026-11-25", rename=(("created", "made"),))
    assert (found.pair.name, found.column.name) == ("made", "created")
    with pytest.raises(NotComparable, match="the route renames it to made"):
        part("created=2026-11-25", rename=(("created", "made"),))


@pytest.mark.parametrize(
    ("condition", "shape", "said"),
    [
        ("dt=2026-11-25", {"computed": (("dt", "CAST(created AS date)"),)},
         "computes or masks column dt: name a column that it shows as the source has it"),
        ("day=2026-11-25", {"drop": ("Day",)}, "no column day of the target is compared"),
        ("day=2026-11-25", {"masks": (("Day", "redact"),)}, "computes or masks column Day"),
        # A computed column under the name that a source's column has given up.
        ("created=2026-11-25",
         {"rename": (("created", "made"),), "computed": (("created", "paid"),)},
         "computes or masks column created"),
    ],
)  # fmt: skip
def test_a_column_that_the_route_makes_is_refused(
    condition: str, shape: dict[str, Any], said: str
) -> None:
    """The source has no column that selects the same rows."""
    with pytest.raises(NotComparable, match=said):
        part(condition, **shape)


def test_the_words_of_the_lake() -> None:
    """Literals have the column's own type: the table's partitions are told apart by them."""
    assert part("day=2026-11-25").lake == ("`day` >= DATE'2026-11-25' AND `day` < DATE'2026-11-26'")
    assert (
        "`created` >= TIMESTAMP_NTZ'2026-11-25 00:00:00.000000'" in part("created=2026-11-25").lake
    )
    assert "`paid` < TIMESTAMP'2026-11-25 16:00:00.000000Z'" in part("paid=2026-11-25+08:00").lake


def test_a_sample_of_a_partition_is_refused() -> None:
    """It has no ranges of which some could be chosen. A cut goes with it."""
    with pytest.raises(EditRefused, match="leave --sample out"):
        VerifyOperation.params(targets=["*"], partition="day=2026-11-25", sample=0.5)
    assert VerifyOperation.params(targets=["*"], partition="day=2026-11-25", cut=3).cut == 3


def test_the_result_names_the_partition() -> None:
    """In JSON, in the job's message and in the table that people see."""
    whole = table_result("lake.s.a", "s.a", Table(0, rows=(5, 5)), 1500)
    result = result_of([whole], 1.0, None, "day=2026-11-25")
    assert result["partition"] == "day=2026-11-25"
    assert summary(result) == "1 of 1 table is equal, 5 rows; rows of day=2026-11-25 alone"
    console = Console(width=160, record=True)
    print_result(console, result)
    text = console.export_text()
    assert "rows of day=2026-11-25 alone: no others were compared" in text
