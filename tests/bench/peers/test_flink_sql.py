"""The SQL that Flink is given, and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bench.compare.job import Column, TableSpec
from bench.peers.flink_sql import settings, statements, text
from tests.bench.peers.jobs import COLUMNS, job

OTHER = TableSpec("t1", (*COLUMNS, Column("note", "text", "STRING")), ("id", "name"))


def test_one_source_has_the_columns_of_all_tables(tmp_path: Path) -> None:
    """Each once, in Flink's types, and the message's table as a metadata column."""
    both = job(tmp_path, *job(tmp_path).tables, OTHER)
    (source,) = [one for one in statements(both) if "TABLE `lake_changes`" in one]
    columns = source.partition(" (")[2].partition(") WITH (")[0]
    assert columns == (
        "`id` BIGINT, `name` STRING, `amount` DECIMAL(10,2), `created` TIMESTAMP(6),"
        " `note` STRING, `from_table` STRING METADATA FROM 'value.table' VIRTUAL"
    )


def test_the_source_ends_at_the_jobs_end(tmp_path: Path) -> None:
    """The warm-up's ends earlier, where the topic is that long."""
    sources = [one for one in statements(job(tmp_path, end=500_000)) if "TEMPORARY TABLE" in one]
    ends = [one.partition("partition:0,offset:")[2].partition("'")[0] for one in sources]
    assert ends == ["10000", "500000"]
    sources = [one for one in statements(job(tmp_path, end=400)) if "TEMPORARY TABLE" in one]
    assert all("partition:0,offset:400'" in one for one in sources)


def test_a_sink_is_keyed_and_upserts(tmp_path: Path) -> None:
    """All columns of the key are not null, in format v2."""
    created = statements(job(tmp_path, OTHER))[-2]
    assert created == (
        "CREATE TABLE `lake`.`bench`.`t1` (`id` BIGINT NOT NULL, `name` STRING NOT NULL,"
        " `amount` DECIMAL(10,2), `created` TIMESTAMP(6), `note` STRING,"
        " PRIMARY KEY (`id`, `name`) NOT ENFORCED)"
        " WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"
    )


def test_the_last_statement_fills_every_table_from_one_source(tmp_path: Path) -> None:
    """One statement set, so one job; each sink takes the changes of its own table."""
    told = statements(job(tmp_path, *job(tmp_path).tables, OTHER))[-1]
    assert told == (
        "EXECUTE STATEMENT SET\nBEGIN\n"
        "INSERT INTO `lake`.`bench`.`t0` SELECT `id`, `name`, `amount`, `created`"
        " FROM `lake_changes` WHERE `from_table` = 't0';\n"
        "INSERT INTO `lake`.`bench`.`t1` SELECT `id`, `name`, `amount`, `created`, `note`"
        " FROM `lake_changes` WHERE `from_table` = 't1';\n"
        "END"
    )


def test_each_topic_of_debeziums_avro_is_a_source(tmp_path: Path) -> None:
    """Of its table alone, so without a filter; times are in milliseconds there."""
    both = job(tmp_path, *job(tmp_path).tables, OTHER)
    both = structs.replace(
        both, format="debezium-avro", registry="http://r/v7",
        ends={"x.t0": (30_000,), "x.t1": (400,)},
    )  # fmt: skip
    told = statements(both)
    sources = [one for one in told if "TEMPORARY TABLE" in one]
    ends = [one.partition("partition:0,offset:")[2].partition("'")[0] for one in sources]
    assert ends == ["5000", "400", "30000", "400"]
    assert sources[2].startswith(
        "CREATE TEMPORARY TABLE `lake_changes_t0` (`id` BIGINT, `name` STRING,"
        " `amount` DECIMAL(10,2), `created` TIMESTAMP(3)) WITH ('connector' = 'kafka',"
        " 'topic' = 'x.t0',"
    )
    assert sources[2].endswith(
        "'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r/v7')"
    )
    assert "CAST(`created` AS TIMESTAMP(6)) FROM `lake_changes_t0`;\n" in told[-1]


def test_the_warm_up_writes_to_a_catalog_of_its_own(tmp_path: Path) -> None:
    """Nothing of it is in the tables that are compared, nor in their folder."""
    told = statements(job(tmp_path))
    warm = told[: len(told) // 2]
    assert "CREATE CATALOG `warm`" in warm[0]
    assert not [
        one for one in warm if "`lake`" in one or "/warehouse" in one or "/catalog.db" in one
    ]
    assert f"'uri' = 'jdbc:sqlite:{tmp_path}/catalog.db'" in told[len(told) // 2]


def test_a_column_of_two_types_is_refused(tmp_path: Path) -> None:
    """One source can't have both."""
    other = TableSpec("t1", (Column("id", "int(11)", "INT"),), ("id",))
    with pytest.raises(ValueError, match="column id is INT and BIGINT"):
        statements(job(tmp_path, *job(tmp_path).tables, other))


@given(st.text())
def test_a_text_is_quoted(value: str) -> None:
    """Quotes inside are doubled: what is between the outer ones ends nowhere early."""
    quoted = text(value)
    assert quoted[0] == quoted[-1] == "'"
    assert quoted[1:-1].replace("''", "") == value.replace("'", "")
    assert quoted.count("'") == 2 + 2 * value.count("'")


def test_a_variant_is_in_the_settings(tmp_path: Path) -> None:
    """Parallelism can be chosen for a run; files go below the job's folder."""
    one = job(tmp_path)
    one.variant["parallelism"] = "2"
    told = settings(one)
    assert told["parallelism.default"] == "2"
    assert told["execution.checkpointing.dir"] == f"file://{tmp_path}/scratch/checkpoints"
