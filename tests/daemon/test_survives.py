"""What happens around a daemon: no room for its positions, nobody who reads its log or its page."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.runtime.programs import free_port
from sources import opening
from tests import needs
from tests.daemon.flow import Flow, Log, pipeline

CHECKOUT = Path(__file__).parents[2]
P = pipeline("p", "t", "a")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """What all daemons of the test read."""
    made = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", made.source)
    return made


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


def test_a_full_disk_under_the_positions_stops_nothing_and_is_told(
    tmp_path: Path, log: Log
) -> None:
    """Rows go on; the positions follow when there is room, and a restart reads nothing twice."""
    state = tmp_path / "state"
    with small_disk(state):
        flow = Flow(tmp_path, log, P)
        flow.start()
        flow.insert("t", "a")
        flow.applied("a", 1)
        filler = state / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(bytes(2 << 20))
        flow.insert("t", "a")
        flow.applied("a", 2)
        flow.until(lambda: flow.pipelines()["p"]["offset_file"]["error"])
        filler.unlink()
        flow.insert("t", "a")
        flow.until(lambda: flow.pipelines()["p"]["offset_file"]["error"] is None)
        flow.stop()
        flow.start()
        flow.insert("t", "a")
        flow.applied("a", 4)
        assert flow.pipelines()["p"]["messages_read"] == 1
        flow.stop()


UNREAD = """
import os, sys
from pathlib import Path
from daemon.config.file import load
from daemon.admin.logs import set_up_logs
from sources import opening
from tests.daemon.flow import Flow, Log, pipeline

folder, log = Path(sys.argv[1]), Log()
opening.ADAPTERS["kafka"] = log.source
flow = Flow(folder, log, pipeline("p", "t", "a"))
set_up_logs(load(flow.config).log)
flow.start()
print("it runs", file=sys.stderr, flush=True)
sys.stdin.readline()
flow.insert("t", "a", 20)
flow.applied("a", 20)
flow.stop()
os._exit(7)
"""


def test_a_log_that_nobody_reads_any_more_stops_nothing(tmp_path: Path) -> None:
    """The journal is away: what would be written there is lost, the rows are not."""
    child = subprocess.Popen(
        [sys.executable, "-c", UNREAD, str(tmp_path)], cwd=CHECKOUT, text=True,
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    assert child.stdout is not None
    assert child.stdin is not None
    assert "it runs\n" in child.stderr
    child.stderr.close()
    child.stdout.close()
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.wait(120) == 7


READERS = """
import os, socket, sys, threading, time
port, count = int(sys.argv[1]), int(sys.argv[2])

def read(number):
    path = "/metrics" if number % 2 else f"/?search={number}"
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                client.sendall(f"GET {path} HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n".encode())
                first = client.recv(1)
                os.write(1, b"read\\n")
                while client.recv(1):
                    time.sleep(0.05)
        except OSError:
            pass  # it was let go for its slowness

for number in range(count):
    threading.Thread(target=read, args=(number,)).start()
"""
COUNT = 50
WITHIN_S = 5.0
"""Of a calm row; a few tenths are usual."""


def freshness(flow: Flow, rows: int = 40) -> list[float]:
    """Seconds until each of some rows of table b is in its table, ten a second, at full load."""
    waits, busy = [], threading.Event()

    def load() -> None:
        while not busy.wait(0.2):
            flow.insert("t", "a", 500)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for number in range(1, rows + 1):
            begun = time.monotonic()
            flow.insert("u", "b")
            flow.applied("b", number)
            waits.append(time.monotonic() - begun)
    finally:
        busy.set()
        thread.join()
    return waits


@pytest.mark.parametrize("readers", [0, COUNT])
def test_slow_readers_of_the_page_cost_no_freshness(tmp_path: Path, log: Log, readers: int) -> None:
    """Fifty of them, of the page and of the metrics, while rows come as fast as they are made."""
    port = free_port()
    listen = f'[metrics]\nlisten = "127.0.0.1:{port}"\n'
    flow = Flow(tmp_path, log, P + pipeline("q", "u", "b") + listen)
    flow.start()
    command = [sys.executable, "-c", READERS, str(port), str(readers)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        for _ in range(readers):
            assert child.stdout.readline() == "read\n"
        waits = freshness(flow)
        print(f"p50 {statistics.median(waits):.2f} s, max {max(waits):.2f} s, {flow.count('a')}")
        assert max(waits) < WITHIN_S
    finally:
        child.kill()
        child.communicate()
        flow.stop()
