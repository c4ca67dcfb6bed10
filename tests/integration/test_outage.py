"""Kafka is away for longer than the member's session lasts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

from daemon.admin.logs import set_up_logs
from daemon.config.file import load
from demo.broker import DevBroker
from settings.exit import Exit
from tests.integration.rig import Rig, canal
from tests.integration.test_group import Gated, Log, Member


@pytest.mark.long
@pytest.mark.timeout(300)
def test_an_outage_that_outlives_the_session_ends_no_pipeline(
    tmp_path: Path, lake_conf: Mapping[str, str], request: pytest.FixtureRequest
) -> None:
    """librdkafka sends the commits of before once more, with no member id any more: the group
    takes those for another's who has our ``group.instance.id``, and the client for its end."""
    with DevBroker(tmp_path / "broker") as broker:
        spark = functools.partial(request.getfixturevalue, "spark")
        rig = Rig(broker, spark, lake_conf, tmp_path)
        target = f"lake.{rig.db}.t"

        def insert(key: int) -> None:
            row = {"id": key, "name": "a", "qty": key}
            rig.produce(canal(f"{rig.db}.t", "INSERT", [row]))

        kafka = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
        config = rig.write_config(p=rig.pipeline(kafka=kafka))
        set_up_logs(load(config).log)
        insert(1)
        tier, log = Gated(rig), Log(rig.log_file)
        member = Member(rig, config, tier)
        try:
            assert tier.begun.acquire(timeout=90)
            broker.stop()
            tier.gate.set()  # what is written now is committed to a broker that is away
            log.of("p", "lost")
            broker.start()
            insert(2)
            log.written(target)
        finally:
            status = member.stop()
            log.close()
        assert status is Exit.OK
        assert rig.events("pipeline_failed") == []
        assert rig.rows("t") == [(1, "a", 1), (2, "a", 2)]
