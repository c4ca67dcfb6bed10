"""``binlogd gate wait``: ends when tables have all up to a moment of their source, not before."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from settings.exit import Exit
from tests.integration.bank import TYPES, Bank
from tests.integration.rig import Rig, canal
from tests.integration.test_process import Follower, daemon, ended, follower

__all__ = ["follower"]

pytestmark = pytest.mark.integration

NOON = 1_764_072_000_000
"""2025-11-25T12:00Z, by the source's clock."""


def change(rig: Rig, table: str, key: int, seconds: float, **more: Any) -> bytes:
    row = {"id": key, "name": "a", "qty": key}
    return canal(f"{rig.db}.{table}", "INSERT", [row | more], es=NOON + round(seconds * 1000))


def gate(rig: Rig, *tables: str, **more: str) -> subprocess.Popen[str]:
    options = {"through": "2025-11-25T12:00:00Z", "timeout": "0s"} | more
    words = [word for name, value in options.items() for word in (f"--{name}", value) if word]
    names = [f"lake.{rig.db}.{table}" for table in tables]
    config = str(rig.folder / "config.toml")
    return subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "gate", "wait", *names, *words, "--json",
         "--config", config], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def told(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    out, said = process.communicate(timeout=90)
    assert process.returncode in (0, 75), said
    return process.returncode, json.loads(out)


def test_a_table_is_complete_once_all_before_the_moment_is_written(rig: Rig) -> None:
    """What proves the moment may be of any table; what came late of another one waits for it."""
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter"))
    orders = f"lake.{rig.db}.orders"
    rig.produce(change(rig, "orders", 1, -60), change(rig, "orders", 2, 0.5))
    assert rig.run(config) is Exit.OK
    status, found = told(gate(rig, "orders"))
    assert (status, found["complete"]) == (75, False)
    assert "waits for a change of after 12:00:01 UTC" in found["tables"][orders]

    rig.produce(change(rig, "items", 1, -1), change(rig, "items", 2, 5))
    status, found = told(gate(rig, "orders"))
    assert (status, found["ends"]) == (75, {f"{rig.topic}:0": 3})
    assert "the committed position of" in found["tables"][orders]
    assert rig.run(config) is Exit.OK
    status, found = told(gate(rig, "orders", "items"))
    assert (status, set(found["tables"].values())) == (0, {None})

    status, found = told(gate(rig, "ordres"))
    assert status == 75
    assert "nothing was ever written to it" in found["tables"][f"lake.{rig.db}.ordres"]


def test_what_waits_in_another_topic_is_waited_for(rig: Rig) -> None:
    """A table's first row of a topic that is not read yet: its marks don't know the topic."""
    other = f"{rig.topic}-other"
    rig.create_topic(other)
    config = rig.write_config(p=rig.pipeline(topics=[rig.topic, other], mode="append"))
    rig.produce(change(rig, "orders", 1, -60))
    rig.produce(change(rig, "items", 1, -60), topic=other)
    assert rig.run(config) is Exit.OK
    rig.produce(change(rig, "orders", 2, -30), topic=other)
    rig.produce(change(rig, "orders", 3, 5))
    status, found = told(gate(rig, "orders"))
    assert status == 75
    assert f"position of {other}:0 is 1, 2 is needed" in found["tables"][f"lake.{rig.db}.orders"]
    assert rig.run(config) is Exit.OK
    status, found = told(gate(rig, "orders"))
    assert status == 75  # its marks know the topic now, which has no change of after the moment
    rig.produce(change(rig, "items", 2, 5), topic=other)
    assert told(gate(rig, "orders"))[0] == 0


def test_it_waits_for_what_comes(rig: Rig) -> None:
    """It ends by itself once the daemon has written what lies before the moment."""
    rig.write_config()
    rig.produce(change(rig, "orders", 1, -60))
    process = gate(rig, "orders", timeout="80s")
    rig.produce(change(rig, "orders", 2, -1), change(rig, "orders", 3, 5))
    assert rig.run() is Exit.OK
    status, found = told(process)
    assert (status, found["ends"]) == (0, {f"{rig.topic}:0": 2})


def test_a_letter_before_the_moment_shuts_it(rig: Rig) -> None:
    config = rig.write_config(p=rig.pipeline(on_bad_record="dead-letter"))
    bad, orders = change(rig, "orders", 2, -30, id="no number"), f"lake.{rig.db}.orders"
    rig.produce(change(rig, "orders", 1, -60), bad, change(rig, "items", 1, 5))
    assert rig.run(config) is Exit.OK
    status, found = told(gate(rig, "orders", "items"))
    assert (status, found["tables"]) == (
        75,
        {orders: f"a dead letter is open: {rig.topic}:0:1", f"lake.{rig.db}.items": None},
    )
    with (rig.folder / "state" / "p.dead-letters.jsonl").open("a") as file:
        file.write("half a li\n")
    status, found = told(gate(rig, "items"))
    assert status == 75
    assert "p.dead-letters.jsonl:2: is damaged" in found["tables"][f"lake.{rig.db}.items"]


def test_positions_of_another_log_prove_nothing(rig: Rig) -> None:
    """The topic was made again, or its log was cut: offsets mean other messages."""
    rig.write_config()
    rig.produce(*(change(rig, "orders", key, -60) for key in range(4)), change(rig, "orders", 9, 5))
    assert rig.run() is Exit.OK
    rig.make_again(rig.topic)
    rig.produce(change(rig, "orders", 1, -60), change(rig, "orders", 2, 5))
    process = gate(rig, "orders")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "was deleted and recreated" in said


def test_what_can_not_be_told_is_refused(rig: Rig) -> None:
    rig.write_config()
    for words, why in (
        ({"through": "yesterday"}, "2026-01-31T00:00:00Z, or 2h, is required"),
        ({"timeout": "soon"}, "'soon' is no time"),
        ({"through": "2025-11-25T12:00:00"}, "needs a zone"),
    ):
        process = gate(rig, "orders", **words)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2
        assert why in said
    rig.write_config(p=rig.pipeline(offset_stores=["kafka-commit"]))
    assert 'add "file" to its offset_stores' in gate(rig, "orders").communicate(timeout=60)[1]
    process = gate(rig, "orders`")
    assert "no target of any route" in process.communicate(timeout=60)[1]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_cut_that_has_them_is_named(rig: Rig, follower: Follower) -> None:
    """While transfers go on, and after the last one, where no cut is made any more."""
    kind = {"format": "maxwell-json", "cut_every": "1s", "cuts.table": f"lake.{rig.db}.cuts"}
    config = rig.write_config(p=rig.pipeline(**kind, types=TYPES, write=None))
    bank, both = Bank(rig, 2), ("accounts0", "accounts1")
    bank.open()
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("cut")
    # The bank's clock goes on by a second with each transaction.
    moment = datetime.fromtimestamp(1_700_000_000 + 2000, UTC).isoformat()
    with bank.open_for_business(500):
        status, found = told(gate(rig, *both, through=moment, timeout="80s", cut=""))
    assert status == 0, found
    (held,) = rig.spark.sql(
        f"SELECT positions FROM lake.`{rig.db}`.cuts WHERE number = {found['cut']}"
    ).collect()
    (end,) = found["ends"].values()
    assert json.loads(held.positions)[f"{rig.topic}:0"] >= end
    process.terminate()
    assert ended(process, 120)[0] == 0
    status, again = told(gate(rig, *both, through=moment, cut=""))
    assert (status, again["cut"] >= found["cut"]) == (0, True)

    asked_of_one_cut(rig, both, moment, found["cut"])
    words = ["offsets", "reset", "--pipeline", "p", "--to", "earliest", "--execute"]
    assert ended(daemon(*words, "--config", str(config)), 120)[0] == 0
    process = daemon("run", "--config", str(config), start_new_session=True)
    follower.wait_for("cuts_withdrawn")
    status, later = told(gate(rig, *both, through=moment, timeout="80s", cut=""))
    assert (status, later["cut"] > again["cut"]) == (0, True), later
    process.terminate()
    assert ended(process, 120)[0] == 0
    cuts = withdrawals(config)
    stand = [number for number, by in cuts.items() if by is None]
    assert later["cut"] in stand
    assert min(stand) > again["cut"] > found["cut"] - 1


def asked_of_one_cut(rig: Rig, tables: tuple[str, ...], moment: str, good: int) -> None:
    """One that is there and has them; one from before; one that is none; one that may come."""
    status, same = told(gate(rig, *tables, through=moment, **{"in-cut": str(good)}))
    assert (status, same["cut"]) == (0, good)
    numbers = rig.spark.sql(f"SELECT min(number), max(number) FROM lake.`{rig.db}`.cuts").collect()
    first, never = numbers[0][0], numbers[0][1] + 100_000
    for number, said in (
        (first, f"cut {first} was made before"),
        (first - 1, f"lists no cut {first - 1} of pipeline p"),
    ):
        process = gate(rig, *tables, through=moment, **{"in-cut": str(number)})
        assert said in process.communicate(timeout=90)[1]
        assert process.returncode == 2
    status, later = told(gate(rig, *tables, through=moment, **{"in-cut": str(never)}))
    assert (status, set(later["tables"].values())) == (75, {f"cut {never} is not listed yet"})


def withdrawals(config: Path) -> dict[int, str | None]:
    """Of each cut since when it is withdrawn."""
    listed = daemon("cuts", "list", "--json", "--config", str(config)).communicate(timeout=60)[0]
    return {one["number"]: one["withdrawn"] for one in json.loads(listed)}
