"""``binlogd offsets where``: where messages are that were applied, and those that were not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from settings.exit import Exit
from tests.integration.rig import Rig, canal

pytestmark = pytest.mark.integration


def asked(rig: Rig, place: str, *more: str) -> tuple[int, dict[str, Any]]:
    config = str(rig.folder / "config.toml")
    done = CliRunner().invoke(
        app, ["offsets", "where", f"{rig.topic}:{place}", "--json", "--config", config, *more]
    )
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


def test_each_message_is_found_where_it_is(rig: Rig) -> None:
    """In a version of the lake's table, in the letters, in nobody's table, or not there yet."""
    row = {"id": 1, "name": "a", "qty": 2}
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter"))
    rig.produce(
        canal(f"{rig.db}.t", "INSERT", [row], gtid="u:1"),
        canal(f"{rig.db}.t", "INSERT", [{"id": "no number", "name": "b", "qty": 3}], gtid="u:2"),
        canal("elsewhere.t", "INSERT", [row], gtid="u:3"),
    )
    assert rig.run(config) is Exit.OK
    first = str(rig.version("t"))
    rig.produce(canal(f"{rig.db}.t", "INSERT", [row | {"id": 2}], gtid="u:4"))
    assert rig.run(config) is Exit.OK
    second = str(rig.version("t"))
    rig.produce(canal(f"{rig.db}.t", "INSERT", [row | {"id": 3}], gtid="u:5"))

    target = f"lake.{rig.db}.t"
    local = rig.lake.get("uri", "").startswith("jdbc:sqlite:") or rig.lake["type"] == "hadoop"
    for place, version in ((0, first), (3, second)):
        status, found = asked(rig, f"0:{place}")
        (one,) = found["targets"]
        assert (status, one["target"], one["stage"]) == (0, target, "applied")
        if local:
            assert one["since"]["version"] == version
            assert not one["since"]["earlier_expired"]
    status, found = asked(rig, "0:1")
    assert (status, [(t["target"], t["stage"]) for t in found["targets"]]) == (
        1, [(target, "dead letter")],
    )  # fmt: skip
    status, found = asked(rig, "0:2")
    assert (status, found["targets"], found["note"]) == (0, [], "no route takes elsewhere.t")
    status, found = asked(rig, "0:4")
    assert (status, found["targets"][0]["stage"]) == (1, "waiting")
    assert asked(rig, "0", "--gtid", "u:4") == asked(rig, "0:3")

    if local:
        rolled_back(rig, first)


def rolled_back(rig: Rig, version: str) -> None:
    """Somebody takes the second write out of the table: the record does not know it."""
    rig.spark.sql(f"CALL lake.system.rollback_to_snapshot('{rig.db}.t', {version})")
    status, found = asked(rig, "0:3")
    assert (status, found["targets"][0]["stage"]) == (1, "waiting")
    assert "rolled back" in found["targets"][0]["line"]


def test_what_is_not_in_the_log_is_named(rig: Rig) -> None:
    rig.produce(canal(f"{rig.db}.t", "INSERT", [{"id": 1, "name": "a", "qty": 2}]))
    config = str(rig.write_config())
    for words, said in (
        ([f"{rig.topic}:0:1"], "has no offset 1 yet: it ends at 1"),
        ([f"{rig.topic}:7:1"], "has no partition 7"),
        (["nobody:0:1"], "no pipeline reads 'nobody'"),
        ([rig.topic], "TOPIC:PARTITION:OFFSET is required"),
        ([f"{rig.topic}:0", "--gtid", "u:9"], "no record tells its GTID (offsets 0 to 0)"),
        ([f"{rig.topic}:0", "--lsn", "9"], "no record tells its LSN"),
        ([f"{rig.topic}:0", "--lsn", "9", "--gtid", "u:9"], "not both"),
    ):
        done = CliRunner().invoke(app, ["offsets", "where", *words, "--config", config])
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.stderr.split()), done.stderr
