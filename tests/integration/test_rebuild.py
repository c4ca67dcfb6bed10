"""A table is read again from its log into a new one, which takes its name: all of it real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from daemon.admin.logs import set_up_logs
from daemon.cli.__main__ import app
from daemon.cli.base.operations import carry_out
from daemon.config.file import load
from daemon.operations.rebuild.operation import RebuildOperation
from daemon.operations.rebuild.rebuilds import Rebuilds
from daemon.state.spills.file import SpillFolder
from settings.exit import Exit
from sparkwriter.iceberg import swap as iceberg_swap
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Log, Member

pytestmark = pytest.mark.long


@pytest.fixture
def log(rig: Rig) -> Iterator[Log]:
    made = Log(rig.log_file)
    yield made
    made.close()


def insert(rig: Rig, *keys: int, table: str = "orders") -> list[bytes]:
    rows = ({"id": key, "name": f"n{key}", "qty": key} for key in keys)
    return [canal(f"{rig.db}.{table}", "INSERT", [row]) for row in rows]


def wanted(*keys: int) -> list[tuple[Any, ...]]:
    return [(key, f"n{key}", key) for key in keys]


def config(rig: Rig, **more: Any) -> Path:
    """Each table as it is and as a changelog."""
    routes = [
        {"target": "lake.{database}.{table}"},
        {"target": "lake.{database}.{table}_log", "mode": "append"},
    ]
    return rig.write_config(p=rig.pipeline(target=None, route=routes, **more))


def ask(rig: Rig, table: str = "orders", **flags: bool) -> int:
    """``binlogd tables rebuild``."""
    target = f"lake.{rig.db}.{table}"
    rebuild = RebuildOperation()
    return carry_out(rebuild, {"target": target, **flags}, True, config(rig), None, False).value


def sql(rig: Rig, text: str) -> None:
    rig.spark.sql(text.format(t=f"lake.`{rig.db}`.orders")).collect()


def damage(rig: Rig) -> None:
    """By hand: a row is changed, one is gone, one is nobody's."""
    sql(rig, "UPDATE {t} SET name = 'wrong' WHERE id = 1")
    sql(rig, "DELETE FROM {t} WHERE id = 2")
    sql(rig, "INSERT INTO {t} (id, name, qty) VALUES (77, 'x', 77)")


def tables(rig: Rig) -> list[str]:
    found = rig.spark.sql(f"SHOW TABLES IN lake.`{rig.db}`").collect()
    return sorted(row.tableName for row in found)


def offsets(rig: Rig, table: str = "orders_log") -> list[int]:
    found = rig.spark.sql(f"SELECT _offset FROM lake.`{rig.db}`.`{table}` ORDER BY 1").collect()
    return [row[0] for row in found]


@pytest.mark.timeout(300)
def test_a_damaged_table_is_rebuilt_and_another_is_left_alone(rig: Rig) -> None:
    """With the daemon stopped; what came since the damage is in it too."""
    rig.produce(*insert(rig, 1, 2), *insert(rig, 1, table="good"))
    assert rig.run(config(rig)) is Exit.OK
    damage(rig)
    good = rig.version("good")
    assert ask(rig) == 0
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert rig.version("good") == good
    assert offsets(rig) == [0, 1, 3]
    assert tables(rig) == ["good", "good_log", "orders", "orders_log"]
    assert not rig.snapshot().rebuilds
    rig.produce(*insert(rig, 4))
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3, 4)


@pytest.mark.timeout(300)
def test_a_running_daemon_rebuilds_and_goes_on(rig: Rig, log: Log) -> None:
    """A changelog, while rows come for it and for others: each offset is there once."""
    path = config(rig)
    set_up_logs(load(path).log)
    rig.produce(*insert(rig, 1, 2))
    assert rig.run(path) is Exit.OK, rig.stderr  # what is rebuilt is recorded, so it was saved
    sql(rig, "DELETE FROM {t}_log")
    member = Member(rig, path)
    log.wait_for("assigned", times=2)
    assert ask(rig, "orders_log", keep_old=True) == 0
    rig.produce(*insert(rig, 3), *insert(rig, 1, table="good"))
    log.wait_for("rebuilt")
    log.wait_for("assigned")
    rig.produce(*insert(rig, 4))
    log.wait_for("written")
    assert member.stop() is Exit.OK
    assert rig.run(path) is Exit.OK, rig.stderr
    assert offsets(rig) == [0, 1, 2, 4]
    assert rig.rows("orders") == wanted(1, 2, 3, 4)
    assert rig.rows("good") == wanted(1)
    (kept,) = [name for name in tables(rig) if "__before_" in name]
    assert offsets(rig, kept) == []


@pytest.mark.timeout(300)
def test_a_quarantined_table_is_rebuilt_and_its_spill_is_gone(rig: Rig) -> None:
    """That is what it is for: the log has what the table refuses."""
    path = config(rig, on_refused_target="quarantine")
    rig.produce(*insert(rig, 1))
    assert rig.run(path) is Exit.OK
    sql(rig, "ALTER TABLE {t} DROP COLUMN qty")
    sql(rig, "ALTER TABLE {t} ADD COLUMN qty BOOLEAN")
    rig.produce(*insert(rig, 2))
    assert rig.run(path) is Exit.OK
    assert list(rig.snapshot().spills) == [f"lake.{rig.db}.orders"]
    assert ask(rig) == 0
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig, on_refused_target="quarantine")) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert not rig.snapshot().spills
    assert not list((rig.folder / "state" / "p.spill").glob("*.spill"))
    rig.produce(*insert(rig, 4))
    assert rig.run(path) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3, 4)


STEPS = {
    "between the names": (iceberg_swap, "_rename"),
    "before the spill goes": (SpillFolder, "drop"),
    "before it is recorded": (Rebuilds, "_swapped"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", STEPS)
def test_it_breaks_off_at_any_step(rig: Rig, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The next start does what is left; nothing is lost or doubled."""
    rig.produce(*insert(rig, 1, 2))
    assert rig.run(config(rig)) is Exit.OK
    damage(rig)
    assert ask(rig) == 0
    place, name = STEPS[step]
    real, calls = getattr(place, name), []

    def dies(*given: Any) -> Any:
        calls.append(name)
        if name == "_swapped":
            real(*given)
        if len(calls) == (2 if name == "_rename" else 1) or name == "_swapped":
            raise RuntimeError("gone")
        return real(*given)

    with monkeypatch.context() as patched:
        patched.setattr(place, name, dies)
        assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
        assert calls
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert offsets(rig) == [0, 1, 2]
    assert tables(rig) == ["orders", "orders_log"]


@pytest.mark.timeout(300)
def test_a_log_without_its_beginning_is_refused(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both numbers are named; forced, the old table is kept beside the new one."""
    rig.produce(*insert(rig, 1, 2, 3))
    assert rig.run(config(rig)) is Exit.OK
    admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})
    cut = KafkaPartition(rig.topic, 0, 2)
    admin.delete_records([cut])[cut].result(20)
    assert ask(rig) == 2
    assert f"{rig.topic}:0 begins at offset 2, not at 0" in capsys.readouterr().err
    assert ask(rig, force=True) == 0
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(3)
    (kept,) = [name for name in tables(rig) if "__before_" in name]
    assert rig.rows(kept) == wanted(1, 2, 3)


@pytest.mark.timeout(300)
def test_a_rebuild_is_given_up(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """The old table gets what came meanwhile, and nothing is left of the new one."""
    rig.produce(*insert(rig, 1, 2))
    assert rig.run(config(rig)) is Exit.OK
    assert ask(rig, cancel=True) == 2
    assert ask(rig) == 0
    assert ask(rig) == 2
    assert "is being rebuilt already" in capsys.readouterr().err
    rig.produce(*insert(rig, 3))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(iceberg_swap, "_remember", _away)
        assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
    assert any("__rebuild_" in name for name in tables(rig))
    assert ask(rig, cancel=True) == 0
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert tables(rig) == ["orders", "orders_log"]


def _away(*given: object) -> None:
    raise RuntimeError("gone")


@pytest.mark.timeout(300)
def test_a_table_rolled_back_between_runs_is_found_and_rebuilt(rig: Rig) -> None:
    """Written on from there it would have a hole for ever."""
    rig.produce(*insert(rig, 1))
    assert rig.run(config(rig)) is Exit.OK
    first = rig.version("orders")
    rig.produce(*insert(rig, 2))
    assert rig.run(config(rig)) is Exit.OK
    sql(rig, f"CALL lake.system.rollback_to_snapshot('lake.{rig.db}.orders', {first})")
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
    assert f"{rig.topic}:0 stands at 0, stood at 1, and is read from 2" in rig.stderr
    assert f"binlogd tables rebuild lake.{rig.db}.orders" in rig.stderr
    assert rig.rows("orders") == wanted(1)
    assert ask(rig) == 0
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert offsets(rig) == [0, 1, 2]


@pytest.mark.timeout(300)
def test_a_table_rolled_back_is_put_right_by_the_reset_that_is_named(rig: Rig) -> None:
    """The command as the message has it; the changelog beside it is not written again."""
    rig.produce(*insert(rig, 1))
    assert rig.run(config(rig)) is Exit.OK
    first = rig.version("orders")
    rig.produce(*insert(rig, 2))
    assert rig.run(config(rig)) is Exit.OK
    sql(rig, f"CALL lake.system.rollback_to_snapshot('lake.{rig.db}.orders', {first})")
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
    command = re.search(r"`binlogd (offsets reset [^`]*)`", rig.stderr)
    assert command is not None
    words = [*command[1].split(), "--execute", "--config", str(config(rig))]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert rig.run(config(rig)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(1, 2, 3)
    assert offsets(rig) == [0, 1, 2]


@pytest.mark.timeout(300)
def test_a_forced_start_takes_the_targets_as_they_are(rig: Rig) -> None:
    """The operator has dropped the table as the source has, and goes on behind that."""
    rig.produce(*insert(rig, 1, 2))
    assert rig.run(config(rig)) is Exit.OK
    sql(rig, "DROP TABLE {t}")
    rig.produce(*insert(rig, 3))
    assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
    assert "the table is gone" in rig.stderr
    start = {"at": "offset", "offsets": {f"{rig.topic}:0": 2}, "force": "dropped"}
    assert rig.run(config(rig, start=start)) is Exit.OK, rig.stderr
    assert rig.rows("orders") == wanted(3)
