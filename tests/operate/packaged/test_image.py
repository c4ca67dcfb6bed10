"""The image: made, unpacked, started as an engine would, stopped by SIGTERM."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.runtime.programs import free_port
from demo.broker import DevBroker
from demo.produce import create_topic, produce
from demo.shop import Shop
from tests.needs import missing, tool
from tests.operate.packaged.conftest import CHECKOUT
from tests.operate.packaged.container import Container, terminate

IMAGE = CHECKOUT / "packaging" / "image"
CHANGES = 20_000
CONFIG = """
[daemon]
state_dir = "/var/lib/binlogd/state"
staging_dir = "/var/lib/binlogd/staging"
[metrics]
listen = "127.0.0.1:{port}"
[kafka]
bootstrap.servers = "{bootstrap}"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:/var/lib/binlogd/catalog.db"
"jdbc.schema-version" = "V1"
warehouse = "/var/lib/binlogd/warehouse"
[pipeline.shop]
topics = ["shop"]
format = "auto"
start = "earliest"
target = "lake.{{database}}.{{table}}"
"""

pytestmark = [pytest.mark.soak, pytest.mark.integration, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, unpacked."""
    tool("mmdebstrap")
    if os.geteuid():
        missing("root", "mounts need it")
    folder = tmp_path_factory.mktemp("image")
    tar = folder / "image.tar"
    made = subprocess.run(
        [IMAGE / "rootfs.sh", package, tar], capture_output=True, text=True, timeout=900
    )
    assert made.returncode == 0, made.stdout + made.stderr
    print(f"image: {tar.stat().st_size / 1e6:.0f} MB unpacked")
    unpacked = folder / "root"
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", tar, "-C", unpacked], check=True, timeout=300)
    tar.unlink()
    return unpacked


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with DevBroker(tmp_path_factory.mktemp("image-broker")) as started:
        create_topic(started.bootstrap, "shop")
        produce(started.bootstrap, "shop", Shop(CHANGES), lambda _: None)
        yield started


def test_a_container_runs_and_stops(root: Path, broker: DevBroker, tmp_path: Path) -> None:
    """Not root, no capability, nothing writable but state and /tmp; the daemon is process 1."""
    port = free_port()
    config, state, log = tmp_path / "config.toml", tmp_path / "state", tmp_path / "log"
    config.write_text(CONFIG.format(port=port, bootstrap=broker.bootstrap))
    config.chmod(0o644)
    state.mkdir()
    os.chown(state, 10001, 10001)
    container = Container(root, state, config)
    _is_closed(container)
    started = container.start(log, "binlogd", "run", "--config", "/etc/binlogd/config.toml")
    try:
        _until_ready(port, started, log)
        begun = time.monotonic()
        terminate(started)
        assert started.wait(120) == 0, log.read_text()
        print(f"stopped in {time.monotonic() - begun:.1f} s")
    finally:
        started.kill()
        started.wait()


def _is_closed(container: Container) -> None:
    """What the manifest asks for is so here, too."""
    said = container.run("sh", "-c", "id -u; id -un; grep CapBnd /proc/self/status; touch /x || id")
    assert said.split()[:4] == ["10001", "binlogd", "CapBnd:", "0000000000000000"]
    assert "Read-only file system" in said


def _until_ready(port: int, started: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 240
    while not _ready(port):
        assert started.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        threading.Event().wait(0.5)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_both_ways_make_the_same_of_the_same_script() -> None:
    """The Containerfile and the script run install.sh, and start as the manifest's user."""
    text = (IMAGE / "Containerfile").read_text()
    assert "install.sh" in (IMAGE / "rootfs.sh").read_text()
    assert "sh /scripts/install.sh" in text
    assert "USER 10001:10001" in text
    assert "usermod --uid 10001" in (IMAGE / "install.sh").read_text()
