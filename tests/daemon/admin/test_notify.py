"""sd_notify over a real datagram socket, and the monitor that decides when to ping."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.admin.service_manager import Monitor, Notifier
from daemon.admin.status.health import conditions
from tests.daemon.admin.page import documents
from tests.daemon.admin.page.documents import quarantined, target


class Manager:
    def __init__(self, place: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(place)
        self.socket.setblocking(False)

    def heard(self) -> list[str]:
        """All lines that have come: sending is synchronous, so nothing is waited for."""
        lines: list[str] = []
        while True:
            try:
                lines += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return lines


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.socket.close()


def test_every_message_as_systemd_reads_it(manager: Manager, tmp_path: Path) -> None:
    """One variable a line; a status is one line whatever it is made from."""
    notifier = Notifier(str(tmp_path / "notify"))
    notifier.ready()
    notifier.status("two\nlines")
    notifier.watchdog()
    notifier.still_starting(60)
    notifier.stopping(1.5)
    assert manager.heard() == [
        "READY=1", "STATUS=two lines", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=60000000",
        "STOPPING=1", "EXTEND_TIMEOUT_USEC=1500000",
    ]  # fmt: skip


def test_an_abstract_address() -> None:
    """``@name`` has no file."""
    name = f"binlogd-{uuid.uuid4().hex}"
    made = Manager(f"\0{name}")
    Notifier(f"@{name}").ready()
    assert made.heard() == ["READY=1"]
    made.socket.close()


def test_without_a_manager_nothing_is_sent() -> None:
    """Started by hand: no error, no watchdog."""
    notifier = Notifier.from_environment({})
    notifier.ready()
    assert (notifier.listening, notifier.watchdog_s) == (False, None)


def test_a_manager_that_is_gone_is_no_reason_to_end(tmp_path: Path) -> None:
    """It is logged, once."""
    notifier = Notifier(str(tmp_path / "nobody"))
    notifier.ready()
    notifier.watchdog()
    assert notifier.listening


def test_children_do_not_inherit_the_line() -> None:
    """The JVM must not speak in the daemon's name."""
    environment = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "2000000", "OTHER": "1"}
    notifier = Notifier.from_environment(environment)
    assert (notifier.watchdog_s, environment) == (2.0, {"OTHER": "1"})


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [("2000000", "our own", 2.0), ("2000000", "1", None), ("0", "", None), ("x", "", None)],
)
def test_the_watchdog_may_be_meant_for_another(usec: str, pid: str, expected: float | None) -> None:
    """WATCHDOG_PID names whom; nonsense means none."""
    environment = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": usec}
    if pid:
        environment["WATCHDOG_PID"] = str(os.getpid()) if pid == "our own" else pid
    assert Notifier.from_environment(environment).watchdog_s == expected


def status(**more: Any) -> dict[str, Any]:
    found = documents.status([target("lake.shop.t", 5)], lag=7) | more
    return found | {"conditions": [one.document() for one in conditions(found)]}


STUCK = {"healthy": False, "silent": [{"actor": "p/fetcher[0]", "seconds": 9.0, "stuck": True}]}


def monitor(folder: Path, shown: list[dict[str, Any]]) -> Monitor:
    notifier = Notifier(str(folder / "notify"), watchdog_s=3.0)
    return Monitor(notifier, lambda: shown[0])


def test_ready_is_said_once(manager: Manager, tmp_path: Path) -> None:
    """When partitions are assigned and sinks open; before that, time is asked for."""
    shown = [status(ready=False)]
    watching = monitor(tmp_path, shown)
    watching.look()
    line = "STATUS=running; shop: running, 7 messages behind"
    assert manager.heard() == ["EXTEND_TIMEOUT_USEC=60000000", "WATCHDOG=1", line]
    shown[0] = status()
    watching.look()
    watching.look()
    assert manager.heard() == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]


def test_spark_that_hangs_at_the_start_gets_no_more_time(manager: Manager, tmp_path: Path) -> None:
    """The manager's own bound ends it: nothing says that there is progress."""
    monitor(tmp_path, [status(state="starting", ready=False)]).look()
    assert not [line for line in manager.heard() if line.startswith("EXTEND")]


def test_a_stuck_actor_is_named_and_not_pinged_for(manager: Manager, tmp_path: Path) -> None:
    """Then the manager ends the process and starts it anew."""
    shown = [status(**STUCK)]
    watching = monitor(tmp_path, shown)
    watching.look()
    assert "WATCHDOG=1" not in (heard := manager.heard())
    assert "STATUS=stuck: p/fetcher[0]" in heard
    shown[0] = status()
    watching.look()
    assert "WATCHDOG=1" in manager.heard()


def test_what_is_ill_is_named_without_its_seconds(manager: Manager, tmp_path: Path) -> None:
    """A line that changed with each look would be sent with each."""
    shown = [
        documents.status([quarantined(f"lake.shop.t{n}", "why") for n in range(count)], uptime_s=at)
        for count, at in ((1, 5.0), (1, 10.0), (3, 15.0))
    ]
    watching = monitor(tmp_path, shown)
    for _ in range(2):
        watching.look()
        shown.pop(0)
    watching.look()
    lines = [line for line in manager.heard() if line.startswith("STATUS")]
    assert lines == [
        "STATUS=running; not well: quarantine of lake.shop.t0",
        "STATUS=running; not well: quarantine of lake.shop.t0 and 2 more",
    ]


def test_a_pipeline_that_failed_at_once_does_not_hold_the_start(
    manager: Manager, tmp_path: Path
) -> None:
    """It waits for a person: a manager that waited with it would end the process. Why is told."""
    failed = documents.status([target("lake.shop.t", 5)])
    (pipeline,) = failed["pipelines"]
    pipeline |= {"failure": "t:0 offset 5: bad", "stage": "ended"}
    watching = monitor(tmp_path, [status(ready=False, pipelines=[pipeline])])
    watching.look()
    assert manager.heard() == [
        "READY=1",
        "WATCHDOG=1",
        "STATUS=pipeline shop failed: t:0 offset 5: bad; binlogd resume shop",
    ]
