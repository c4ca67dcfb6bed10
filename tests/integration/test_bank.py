"""``make bank``: cuts of a bank amid kills. In each the sum is right; in plain reads it is not."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence

import pytest
from pyspark.sql import Row

from tests.integration.bank import TYPES, Bank, ByDuckdb, by_spark
from tests.integration.rig import Rig
from tests.integration.test_process import Follower, daemon, ended, follower

__all__ = ["follower"]

TABLES, PER_SECOND = 10, 2000
KILLS, CUTS = int(os.environ.get("KILLS", "50")), int(os.environ.get("CUTS", "500"))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_sum_is_right_in_each_cut(
    rig: Rig, follower: Follower, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has more transfers than the one before. DuckDB reads them all, Spark every tenth."""
    bank, begun = Bank(rig, TABLES), time.monotonic()
    kind = {"format": "maxwell-json", "cut_every": "1s", "cuts.table": f"lake.{rig.db}.cuts"}
    config = rig.write_config(p=rig.pipeline(**kind, types=TYPES, write=None))
    bank.open()
    plain = []
    with bank.open_for_business(PER_SECOND):
        for life in range(KILLS + 1):
            process = daemon("run", "--config", str(config), start_new_session=True)
            follower.wait_for("running")
            follower.wait_for("cut", times=max(1, CUTS // (KILLS + 1)), within_s=600)
            plain.append(by_spark(rig, TABLES))
            if life < KILLS:
                process.kill()
                ended(process)
    process.send_signal(signal.SIGTERM)
    assert ended(process, 300)[0] == 0
    rows = rig.spark.sql(f"SELECT * FROM lake.`{rig.db}`.cuts ORDER BY number").collect()
    whole, transfers = read_back(rig, rows, bank.total)
    wrong = sum(each.held != bank.total for each in plain)
    took = time.monotonic() - begun
    with capsys.disabled():
        print(
            f"\n{len(rows)} cuts of {TABLES} tables, {whole} whole; {KILLS} kills; {transfers:,} "
            f"transfers; {wrong} of {len(plain)} plain reads are wrong; {took:.0f} s"
        )
    assert len(rows) >= CUTS * 0.9
    assert whole >= len(rows) * 0.7
    assert wrong > len(plain) / 2


def read_back(rig: Rig, rows: Sequence[Row], total: int) -> tuple[int, int]:
    """Each cut that has all tables: how many, and the transfers in the last one."""
    reader, whole, before = ByDuckdb(rig), 0, -1
    for number, row in enumerate(rows):
        versions, left_out = json.loads(row.tables), json.loads(row.left_out)
        assert len(versions) + len(left_out) == TABLES, row
        if left_out:
            continue
        assert row.boundary == "transaction", row
        found = reader.sums(versions)
        assert found.held == total, (row, found)
        assert found.transfers > before, (row, found)
        whole, before = whole + 1, found.transfers
        if number % 10 == 0:
            assert by_spark(rig, TABLES, versions) == found
    return whole, before // 2
