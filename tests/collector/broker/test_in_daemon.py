"""The embedded broker in a daemon: it starts, dies, comes back, and ends with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from tests.collector.broker.site import Site

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A new installation; nothing runs yet."""
    made = Site(tmp_path)
    yield made
    made.close()


def broker_processes(site: Site) -> list[int]:
    """The leash and the JVM."""
    mark, found = os.fsencode(site.home.folder / "server.properties"), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return sorted(found)


def test_two_words_of_configuration_are_a_log(site: Site) -> None:
    """``embedded = true`` and a topic's name: no address, no secret, no topic made by hand."""
    site.start()
    site.produce(500)
    site.applied()
    assert site.broker()["state"] == "up"
    assert site.end() == 0
    assert broker_processes(site) == []


def test_kill_9_of_the_broker_loses_nothing(site: Site) -> None:
    """In mid-stream: it is shown as down, is started again, and the pipeline goes on."""
    site.start()
    for kill in range(2):
        site.produce(2_000)
        first = site.broker()["pid"]
        os.killpg(first, signal.SIGKILL)
        site.until(lambda first=first: site.broker()["pid"] not in (None, first))
        site.until(lambda: site.broker()["state"] == "up")
        assert site.broker()["starts"] == kill + 2
    site.produce(10)
    site.applied()
    assert "program_down" in site.said()


def test_kill_9_of_the_daemon_takes_the_broker_with_it(site: Site) -> None:
    """In mid-stream, three times: no process is left, and each row is stored once."""
    for _ in range(3):
        site.start()
        site.produce(2_000)
        ends = [os.pidfd_open(pid) for pid in broker_processes(site)]
        assert ends
        site.end(signal.SIGKILL)
        for end in ends:
            assert wait([end], 30), "it lives on"
            os.close(end)
    site.start()
    site.applied()
