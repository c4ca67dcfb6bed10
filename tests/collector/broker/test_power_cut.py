"""A power cut leaves no position above the log's end: the real calls, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.broker.properties import durable
from tests.collector.broker.site import TOPIC, Site
from tests.needs import missing, tool
from tests.sparkwriter.iceberg.disk_order import CALLS, Disk

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]

ROUNDS = 6

WITHOUT = """
import sys
from collector.broker import embedded
embedded.durable = dict
from daemon.cli.__main__ import main
sys.argv[0] = "binlogd"
main()
"""
"""The daemon as it would be if the kernel wrote the log when it likes."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def traced(site: Site, *program: str) -> Disk:
    """Produce and apply, a round at a time, under a tracer: what was durable at each position."""
    trace = site.folder / "trace"
    strace = [tool("strace"), "-f", "-y", "-s", "256", "--seccomp-bpf", "-e", f"trace={CALLS}"]
    site.start(*strace, "-o", trace, program=program)
    for _ in range(ROUNDS):
        site.produce(20)
        site.applied()
        # Alone: the next round's records are written when this one's position is stored.
        site.until(lambda: site.pipeline()["lag_messages"] == 0)
        site.until(lambda: site.confirmed() == site.rows)
    site.end()
    if "Operation not permitted" in site.said() and "ptrace" in site.said():
        missing("strace", "this machine does not let a process be traced")
    logs, positions = site.home.logs / f"{TOPIC}-0", site.state / "p.offsets.json"
    disk = Disk(str(logs), f"{positions}.new", "", ".log")
    with trace.open(encoding="utf-8", errors="replace") as lines:
        disk.replay(line.rstrip("\n") for line in lines)
    return disk


def test_no_position_is_stored_before_its_records_are_on_the_disk(site: Site) -> None:
    """Whenever the daemon writes its file, the log's files and their names are durable."""
    disk = traced(site)
    assert disk.files == {str(site.home.logs / f"{TOPIC}-0" / f"{0:020}.log")}
    assert disk.pointers >= ROUNDS
    assert disk.early == []


def test_the_trace_sees_a_log_that_is_not_synced(site: Site) -> None:
    """Without the setting positions are ahead of the disk, and this test says so."""
    assert durable() == {"log.flush.interval.messages": "1"}
    disk = traced(site, "-c", WITHOUT)
    assert len(disk.early) >= ROUNDS
