"""A transaction that stays open in the log: what is behind it is lag, and is told by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from daemon.admin.status.health import conditions
from daemon.state import control
from demo.broker import DevBroker
from tests.integration.rig import canal
from tests.integration.test_process import Follower, daemon, ended

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

BEHIND = 500


def test_what_is_behind_an_open_transaction_is_lag_and_is_waited_for_by_name(
    tmp_path: Path,
) -> None:
    """``--until-caught-up`` says what it waits for; when the transaction ends, so does the run."""
    with DevBroker(tmp_path / "broker") as broker:
        config = _config(tmp_path, broker.bootstrap)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(20)
        open_ = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "open"})
        open_.init_transactions(30)
        open_.begin_transaction()
        open_.produce("t", _row(0), partition=0)
        assert open_.flush(30) == 0
        others = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(1, BEHIND + 1):
            others.produce("t", _row(number), partition=0)
        assert others.flush(30) == 0
        follower = Follower(tmp_path / "log")
        process = daemon("run", "--until-caught-up", "--config", str(config))
        try:
            follower.wait_for("open_transaction")
            status = control.ask(tmp_path / "state", {"ask": "status"})
            (pipeline,) = status["pipelines"]
            (part,) = pipeline["partitions"]
            assert (part["lag_messages"], pipeline["lag_messages"]) == (BEHIND + 1, BEHIND + 1)
            found = part["open_transaction"]
            assert (found["offset"], found["messages"]) == (0, BEHIND + 1)
            (told,) = (one for one in conditions(status) if one.kind == "open_transaction")
            assert (told.subject, told.line[:26]) == ("t:0", "a transaction is open at 0")
            assert process.poll() is None
            open_.commit_transaction(30)
            assert ended(process)[0] == 0
        finally:
            process.kill()
            follower.close()


def _row(number: int) -> bytes:
    return canal("shop.t", "INSERT", [{"id": number, "name": "x", "qty": 1}])


def _config(folder: Path, bootstrap: str) -> Path:
    lines = [
        "[daemon]", f'state_dir = "{folder}/state"', f'staging_dir = "{folder}/staging"',
        "[log]", 'format = "json"', f'file = "{folder}/log"', "[batch]", "max_age_s = 0.2",
        "[kafka]", f'"bootstrap.servers" = "{bootstrap}"',
        "[sink.copy]", 'kind = "sqlite"', f'path = "{folder}/copy.db"',
        "[pipeline.p]", 'topics = ["t"]', 'format = "canal-json"',
        'target = "copy.{database}.{table}"',
    ]  # fmt: skip
    path = folder / "config.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
