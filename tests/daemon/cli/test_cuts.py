"""``binlogd cuts`` and ``query --cut`` over a real lake: two tables, three cuts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from actors.runtime.java import CHECKOUT
from daemon.cli.__main__ import app
from daemon.config.file import load
from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.verify.at_cut import read_cut
from daemon.state.edits import EditRefused
from offsets.cuts import Cut
from sparkwriter.iceberg.local_tables import metadata_of
from sparkwriter.iceberg.queries import load_extensions
from tests.daemon.cli.support.cut_lake import (
    FIRST,
    ITEMS,
    ORDERS,
    SECOND,
    SHOP,
    TABLE,
    THIRD,
    WITHDRAWAL,
    CutLake,
)

pytestmark = pytest.mark.integration
CONFIG = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
{catalog}
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
include = ["cut_shop.*"]
target = "lake.{{database}}.{{table}}"
cut_every = "60s"
cuts = {{table = "lake.cut_shop.listed", recent = "1h", hourly_days = 1}}
"""
OTHERS = """
[pipeline.young]
topics = ["young"]
format = "canal-json"
include = ["young.*"]
target = "lake.{database}.{table}"
cut_every = "60s"
[pipeline.none]
topics = ["none"]
format = "canal-json"
include = ["none.*"]
target = "lake.{database}.{table}"
"""


@dataclass
class Made:
    """What there is: the configuration's text, and the cuts."""

    config: str
    cuts: list[Cut]


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, lake: Any, lake_conf: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Made:  # fmt: skip
    """Orders change before the second cut, items before the third, which is without them and is
    withdrawn."""
    if lake.folder is None:
        pytest.skip("DuckDB reads lakes on this machine")
    tables = CutLake(spark, tmp_path_factory.mktemp("staged"))
    orders, items = tables.numbers(ORDERS, 10, 20), tables.numbers(ITEMS, 30)
    first = tables.cut(
        Cut(
            FIRST, "shop", "transaction", {SHOP: 5}, FIRST * 1000 - 250, "uuid:23",
            {str(ORDERS): orders, str(ITEMS): items}, {},
        )
    )  # fmt: skip
    orders = tables.numbers(ORDERS, 11, 19)
    second = tables.cut(
        replace(first, number=SECOND, positions={SHOP: 9}, transaction="uuid:24",
                versions={**first.versions, str(ORDERS): orders})
    )  # fmt: skip
    tables.numbers(ITEMS, 31)
    tables.numbers(ORDERS, 0, 0)
    third = tables.cut(
        replace(second, number=THIRD, boundary="time", positions={SHOP: 12}, transaction=None,
                time_ms=None, versions={str(ORDERS): orders}, left_out={str(ITEMS): "is away"})
    )  # fmt: skip
    tables.cut(replace(third, number=WITHDRAWAL, boundary="withdrawn", positions={SHOP: 9},
                       versions={}, left_out={}))  # fmt: skip
    catalog = "\n".join(f'"{key}" = {json.dumps(value)}' for key, value in lake_conf.items())
    return Made(CONFIG.format(catalog=catalog), [first, second, third])


@pytest.fixture
def run(made: Made, tmp_path: Path) -> Any:
    file = tmp_path / "c.toml"
    file.write_text(made.config)

    def run(*words: str, more: str = "") -> Result:
        file.write_text(made.config + more)
        return CliRunner().invoke(app, [*words, "--config", str(file)])

    return run


def words_of(done: Result) -> str:
    """What was printed, a blank between two words."""
    return " ".join(done.stdout.split())


def test_cuts_are_listed_with_the_newest_first(run: Any) -> None:
    """Of the older two the last one before the full hour is kept."""
    done = run("cuts", "list")
    assert (done.exit_code, done.stderr) == (0, "")
    head, third, second, first = (line.split() for line in done.stdout.splitlines())
    assert " ".join(head) == "number made source time boundary tables left out kept withdrawn"
    assert third == [str(THIRD), "2027-01-15T10:01:00+00:00", "-", "time", "1", str(ITEMS), "yes",
                     "2027-01-15T10:02:00+00:00"]  # fmt: skip
    assert second[0] == str(SECOND)
    assert second[-4:] == ["2", "-", "yes", "-"]
    assert first == [str(FIRST), "2027-01-15T08:01:00+00:00", "2027-01-15T08:00:59.750+00:00",
                     "transaction", "2", "-", "no", "-"]  # fmt: skip


def test_the_list_as_json_and_its_bounds(run: Any) -> None:
    third, second, first = json.loads(run("cuts", "list", "--json").stdout)
    assert third == {
        "number": THIRD, "made": "2027-01-15T10:01:00+00:00", "source_time": None,
        "boundary": "time", "tables": 1, "left_out": [str(ITEMS)], "kept": True,
        "withdrawn": "2027-01-15T10:02:00+00:00",
    }  # fmt: skip
    assert (second["kept"], first["kept"]) == (True, False)
    kept = json.loads(run("cuts", "list", "--json", "--kept").stdout)
    assert [one["number"] for one in kept] == [THIRD, SECOND]
    assert "2 older ones: --limit shows more" in run("cuts", "list", "--limit", "1").stdout


def test_a_cut_is_shown_with_what_is_needed_to_read_it(run: Any, made: Made) -> None:
    third = made.cuts[2]
    said = words_of(run("cuts", "show", str(THIRD)))
    assert f"cut {THIRD} of pipeline shop, by time" in said
    assert "shop:0: below offset 12" in said
    assert f"{ORDERS} {third.versions[str(ORDERS)]}" in said
    assert f"{ITEMS} left out: is away" in said
    assert "no longer kept" not in said
    assert f"cut {THIRD} is withdrawn since 2027-01-15T10:02:00+00:00" in said
    said = words_of(run("cuts", "show", str(FIRST)))
    assert "last transaction: uuid:23" in said
    assert "between two transactions" in said
    assert "no longer kept: snapshots of its tables may have expired" in said
    found = json.loads(run("cuts", "show", str(THIRD), "--json").stdout)
    assert (found["positions"], found["transaction"]) == ({"shop:0": 12}, None)
    assert (found["tables"], found["left_out"]) == (third.versions, third.left_out)


def test_two_cuts_are_compared(run: Any, made: Made) -> None:
    first, second, _ = made.cuts
    found = json.loads(run("cuts", "diff", str(FIRST), str(SECOND), "--json").stdout)
    orders = [cut.versions[str(ORDERS)] for cut in (first, second)]
    assert found == {"positions": {"shop:0": [5, 9]}, "tables": {str(ORDERS): orders}}
    said = words_of(run("cuts", "diff", str(SECOND), str(THIRD)))
    assert f"{ITEMS} {second.versions[str(ITEMS)]} left out: is away" in said
    assert "1 of 2 tables differ" in said


BOTH = f"select o.n, i.n from {ORDERS} o, {ITEMS} i where o.id = i.id"


@pytest.mark.parametrize(("number", "rows"), [(FIRST, [[10, 30]]), (SECOND, [[11, 30]])])
def test_a_query_sees_all_tables_as_they_are_in_a_cut(
    run: Any, number: int, rows: list[list[int]]
) -> None:
    """Also one that has the tag of an older cut, since it has not changed."""
    done = run("query", BOTH, "--cut", str(number), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == rows


def test_a_difference_to_a_cut_that_is_withdrawn_says_so(run: Any, tmp_path: Path) -> None:
    """As does a comparison, which makes none."""
    done = run("cuts", "diff", str(SECOND), str(THIRD), "--json")
    line = f"binlogd: cut {THIRD} is withdrawn since 2027-01-15T10:02:00+00:00: an offsets reset"
    assert (done.exit_code, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith(line)
    assert json.loads(done.stdout)["positions"] == {"shop:0": [9, 12]}
    shop = PipelineConfig(load(tmp_path / "c.toml"), "shop")
    with pytest.raises(EditRefused, match=f"^cut {THIRD} is withdrawn since .*; a later cut can"):
        read_cut(shop, THIRD)
    assert read_cut(shop, SECOND).number == SECOND


def test_a_query_of_a_cut_that_is_withdrawn_says_so(run: Any) -> None:
    """It is as readable as it was."""
    orders = f"select n from {ORDERS} order by n"
    done = run("query", orders, "--cut", str(THIRD), "--json")
    assert json.loads(done.stdout)["rows"] == [[11], [19]]
    assert done.stderr == (
        f"binlogd: cut {THIRD} is withdrawn since 2027-01-15T10:02:00+00:00: an offsets reset had "
        "shop:0 from offset 9 on read again\n"
    )
    assert run("query", orders, "--cut", str(SECOND), "--json").stderr == ""


def of_docs(tool: str) -> list[str]:
    """The statements of a tool in the page about cuts."""
    page = (CHECKOUT / "docs/cuts.md").read_text(encoding="utf-8")
    chapter = re.split("^##+ ", page.split(f"\n### {tool}\n")[1], flags=re.MULTILINE)[0]
    return re.findall(r"```sql\n(.*?);\n```", chapter, re.DOTALL)


def test_spark_reads_it_as_the_docs_say(spark: SparkSession, made: Made) -> None:
    """By the snapshot's id, by the tag of a table that changed; which stands, and its ids."""
    second = made.cuts[1]
    by_id, by_tag, ids, newest = of_docs("Spark")
    version = second.versions[str(ORDERS)]
    for text in (
        re.sub(r"lake\.shop\.orders(.*) \d+$", rf"{ORDERS}\1 {version}", by_id),
        by_tag.replace("lake.shop.orders", str(ORDERS)).replace("1790000060", str(SECOND)),
    ):
        assert sorted(row.n for row in spark.newSession().sql(text).collect()) == [11, 19]
    text = ids.replace("lake.binlogd.cuts", str(TABLE)).replace("1790000060", str(SECOND))
    found = spark.newSession().sql(text).collect()
    assert {row.table: row.version for row in found} == second.versions
    stands = spark.newSession().sql(newest.replace("lake.binlogd.cuts", str(TABLE))).collect()
    assert [row.number for row in stands] == [SECOND]


def test_duckdb_reads_it_as_the_docs_say(made: Made, lake_conf: dict[str, str]) -> None:
    version = made.cuts[1].versions[str(ORDERS)]
    (text,) = of_docs("DuckDB")
    text = re.sub("'.*'", f"'{metadata_of(lake_conf, ORDERS)}'", text)
    text = re.sub(r"\d+\)$", f"{version})", text)
    duckdb = import_module("duckdb")
    with duckdb.connect() as connection:
        load_extensions(duckdb, connection)
        assert sorted(n for _, n in connection.execute(text).fetchall()) == [11, 19]


@pytest.mark.parametrize(
    ("words", "more", "said"),
    [
        (["query", BOTH, "--cut", str(THIRD)], "", f"cut {THIRD} is without {ITEMS}: is away"),
        (["query", f"select 1 from {TABLE}", "--cut", str(FIRST)], "", f"{FIRST} knows no {TABLE}"),
        (["query", BOTH, "--cut", "7"], "", f"{TABLE} lists no cut 7 of pipeline shop"),
        (["query", BOTH, "--cut", "7", "--at", "2h"], "", "--at or --cut, not both"),
        (["query", BOTH, "--pipeline", "shop"], "", "--pipeline belongs to --cut"),
        (["query", BOTH, "--cut", "7"], OTHERS, "--pipeline is required, one of: shop, young"),
        (["cuts", "show", "7"], "", f"{TABLE} lists no cut 7"),
        (["cuts", "show", str(WITHDRAWAL)], "", f"{TABLE} lists no cut {WITHDRAWAL}"),
        (["cuts", "list", "--pipeline", "none"], OTHERS, "makes no cuts: its cut_every is not set"),
        (["cuts", "list", "--pipeline", "x"], OTHERS, "x: unknown; the configuration has: shop"),
        (
            ["cuts", "show", "7", "--pipeline", "young"],
            OTHERS,
            "pipeline young has made no cut yet: lake.binlogd.cuts is not there",
        ),
    ],
)
def test_what_can_not_be_answered_is_named(
    run: Any, words: list[str], more: str, said: str
) -> None:
    done = run(*words, more=more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_no_cut_yet_is_a_list_of_none(run: Any) -> None:
    """The table is made with the first one."""
    done = run("cuts", "list", "--pipeline", "young", more=OTHERS)
    assert (done.exit_code, done.stdout) == (0, "pipeline young has made no cut yet\n")
    assert run("cuts", "list", "--pipeline", "young", "--json", more=OTHERS).stdout == "[]\n"


def test_without_cut_every_the_command_says_so(run: Any, made: Made, tmp_path: Path) -> None:
    text = made.config[: made.config.index("cut_every")]
    (tmp_path / "none.toml").write_text(text)
    done = CliRunner().invoke(app, ["cuts", "list", "--config", str(tmp_path / "none.toml")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no pipeline makes cuts: set cut_every in its section" in done.stderr
