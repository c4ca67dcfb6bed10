"""What happens around a daemon: no room for its positions, nobody who reads its log or its page."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.servers.program import free_port
from tests import needs
from tests.integration.rig import Rig
from tests.integration.test_process import daemon
from tests.integration.test_quotas import measured
from tests.integration.test_reload import Running

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(400)]

READERS = 50


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of 1 MB at a folder."""
    needs.tool("mount")
    if os.geteuid() != 0:
        needs.missing("mount", "only root may")
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_under_the_positions_stops_nothing_and_is_told(rig: Rig) -> None:
    """Rows go on; the positions follow when there is room, and a restart reads nothing twice."""
    state = rig.folder / "state"
    with small_disk(state):
        running = Running(rig)
        try:
            running.insert("a")
            running.applied("a", 1)
            filler = state / "filler"
            with pytest.raises(OSError, match="No space"):
                filler.write_bytes(bytes(2 << 20))
            running.insert("a")
            running.applied("a", 2)
            running.follower.wait_for("offsets_not_stored")
            assert running.status()["offset_file"]["error"]
            filler.unlink()
            while running.status()["offset_file"]["error"]:
                running.insert("a")
            running.applied("a", running.rows)
            running.restart()
            running.insert("a")
            running.applied("a", running.rows)
        finally:
            running.follower.close()
            running.process.kill()
            running.process.communicate()


def test_a_log_that_nobody_reads_any_more_stops_nothing(rig: Rig) -> None:
    """The journal is away: what would be written there is lost, the rows are not."""
    running = Running(rig)
    running.process.terminate()
    running.process.wait(60)
    text = running.config.read_text().replace(f'file = "{rig.log_file}"', "")
    running.config.write_text(text)
    process = daemon("run", "--config", str(running.config))
    try:
        assert process.stderr is not None
        assert process.stdout is not None
        for line in process.stderr:
            if '"event": "running"' in line:
                break
        process.stderr.close()
        process.stdout.close()
        for _ in range(20):
            running.insert("a")
        end = time.monotonic() + 60
        while running.count("a") < 20:
            assert process.poll() is None
            assert time.monotonic() < end
            running.status()
        process.terminate()
        assert process.wait(60) == 0
    finally:
        running.follower.close()
        if process.poll() is None:
            process.kill()


class SlowReaders:
    """Clients that ask for the page and for the metrics again and again, and read a byte at a
    time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(n,)) for n in range(READERS)]
        self.begun = 0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def _read(self, number: int) -> None:
        path = "/metrics" if number % 2 else f"/?search={number}"
        while not self._closed.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self._port), 5) as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                    client.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                    while client.recv(1) and not self._closed.wait(0.05):
                        pass
                    self.begun += 1
            except OSError:  # it was let go for its slowness
                self._closed.wait(0.1)


@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_slow_readers_of_the_page_cost_no_freshness(rig: Rig, read: bool) -> None:
    """Fifty of them while the daemon is at full load."""
    port = free_port()
    readers = SlowReaders(port)
    listen = f'[metrics]\nlisten = "127.0.0.1:{port}"\n'
    try:
        waits, figures = measured(rig, "", True, listen, readers.start if read else lambda: None)
    finally:
        if read:
            readers.close()
    shown = statistics.quantiles(waits, n=20)
    print(f"p50 {shown[9]:.2f} s, p95 {shown[18]:.2f} s, max {max(waits):.2f} s; {figures}")
    assert max(waits) < 10
    assert not read or readers.begun > READERS / 2
