"""The Debian packages on a machine of their own: installed, run, broken, upgraded, removed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.produce import create_topic, produce
from demo.shop import Shop
from tests.needs import missing, tool
from tests.operate.packaged.conftest import CHECK
from tests.operate.packaged.machine import Machine

CHANGES = 20_000
MOST_BYTES, MOST_QUERY_BYTES = 400_000_000, 40_000_000
CONFIG = "/etc/binlogd/config.toml"
DROP_IN = "/etc/systemd/system/binlogd.service.d/quick.conf"
QUICK = "[Service]\nRestartSec=1\nWatchdogSec=20\nTimeoutAbortSec=5\n"
"""The test's minutes are seconds."""
QUERY = "SELECT count(*) AS rows FROM lake.shop.orders"

pytestmark = [pytest.mark.soak, pytest.mark.integration, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def newer(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same under a higher version, with another file and another text of the configuration."""
    folder = tmp_path_factory.mktemp("newer")
    subprocess.run(["dpkg-deb", "-R", package, folder / "tree"], check=True, timeout=300)
    control = folder / "tree/DEBIAN/control"
    version = next(v for v in control.read_text().splitlines() if v.startswith("Version: "))
    control.write_text(control.read_text().replace(version, f"{version}+next"))
    (folder / "tree/usr/lib/binlogd/next").write_text("")
    with (folder / "tree/etc/binlogd/config.toml").open("a") as file:
        file.write("# next\n")
    made = folder / "newer.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "-b", folder / "tree", made],
        check=True, timeout=300, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    tool("nsenter")
    if not Path("/lib/systemd/systemd").exists():
        missing("systemd", "it is not installed")
    if os.geteuid():
        missing("root", "namespaces with a systemd need it")
    with Machine(tmp_path_factory.mktemp("machine")) as booted:
        yield booted


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with DevBroker(tmp_path_factory.mktemp("deb-broker")) as started:
        create_topic(started.bootstrap, "shop")
        yield started


def until(what: str, holds: Callable[[], bool], within_s: float = 240) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, what
        threading.Event().wait(0.5)


def status(machine: Machine) -> dict[str, object]:
    """What the running daemon says of itself, empty while it does not."""
    said = machine.run("binlogd", "status", "--json", "--config", CONFIG, check=False)
    try:
        found: dict[str, object] = json.loads(said)
    except ValueError:
        return {}
    return found


def ready(machine: Machine) -> bool:
    return machine.show("binlogd", "ActiveState") == "active" and bool(status(machine))


def restarts(machine: Machine) -> int:
    return int(machine.show("binlogd", "NRestarts"))


def test_it_is_small_enough_to_download(package: Path, query_package: Path) -> None:
    """What is left out is in packaging/left-out.txt."""
    for deb, most in ((package, MOST_BYTES), (query_package, MOST_QUERY_BYTES)):
        print(f"{deb.name}: {deb.stat().st_size / 1e6:.0f} MB")
        assert deb.stat().st_size < most


def test_lintian_has_nothing_to_say(package: Path, query_package: Path) -> None:
    """No error, no warning; what is overridden has its reason beside it."""
    ran = subprocess.run(
        [tool("lintian"), "--fail-on", "error,warning", "--allow-root", package, query_package],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "")


def test_its_life(
    package: Path, query_package: Path, newer: Path, broker: DevBroker, machine: Machine
) -> None:
    """The steps of an administrator, one after the other.

    The machine is the last of what is made: it sees the files that were there before it.
    """
    _installed(machine, package)
    _runs(machine, broker)
    _killed(machine)
    _hangs(machine)
    _reloaded(machine)
    _stopped(machine)
    _upgraded(machine, newer)
    _equal(machine)
    _queried(machine, query_package)
    _removed(machine, package)


def _installed(machine: Machine, package: Path) -> None:
    """Nothing runs yet; a user, folders, help are there."""
    machine.run("dpkg", "-i", str(package))
    assert machine.show("binlogd", "LoadState") == "loaded"
    assert machine.show("binlogd", "ActiveState") == "inactive"
    machine.run("id", "binlogd")
    assert machine.run("stat", "-c", "%a %U", "/etc/binlogd/secrets").split() == ["700", "root"]
    assert "Usage: binlogd" in machine.run("binlogd", "--help")
    machine.run("man", "-w", "binlogd", "binlogd-tables-rebuild")
    machine.run("binlogd", "check-config", "--config", CONFIG)
    for unit in ("binlogd", "binlogd-gates"):
        path = f"/lib/systemd/system/{unit}.service"
        machine.run("systemd-analyze", "verify", "--man=no", path)


def _runs(machine: Machine, broker: DevBroker) -> None:
    """With the package's configuration, and the demo's stream."""
    text = machine.run("cat", CONFIG).replace("127.0.0.1:9092", broker.bootstrap)
    text = text.replace("[pipeline.shop]\n", '[pipeline.shop]\nstart = "earliest"\n')
    machine.write(CONFIG, text)
    machine.run("mkdir", "-p", str(Path(DROP_IN).parent))
    machine.write(DROP_IN, QUICK)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "binlogd")
    assert machine.show("binlogd", "ActiveState") == "active"  # Type=notify: it has said READY=1
    pid = machine.show("binlogd", "MainPID")
    assert machine.run("stat", "-c", "%U", f"/proc/{pid}").strip() == "binlogd"
    produce(broker.bootstrap, "shop", Shop(CHANGES), lambda _: None)
    assert "running" in machine.journal("binlogd")


def _killed(machine: Machine) -> None:
    """kill -9: systemd starts it again."""
    before = restarts(machine)
    machine.run("systemctl", "kill", "-s", "KILL", "--kill-who=main", "binlogd")
    until("started again", lambda: restarts(machine) > before)
    until("ready again", lambda: ready(machine))


def _hangs(machine: Machine) -> None:
    """A daemon that does nothing any more misses its watchdog."""
    before = restarts(machine)
    machine.run("kill", "-STOP", machine.show("binlogd", "MainPID"))
    until("noticed", lambda: restarts(machine) > before)
    assert "Watchdog timeout" in machine.journal("binlogd")
    until("ready again", lambda: ready(machine))


def _reloaded(machine: Machine) -> None:
    """systemctl reload takes a changed file, in the same process."""
    pid = machine.show("binlogd", "MainPID")
    text = machine.run("cat", CONFIG)
    machine.write(CONFIG, text.replace('level = "info"', 'level = "debug"'))
    machine.run("systemctl", "reload", "binlogd")
    until("reloaded", lambda: "reload_done" in machine.journal("binlogd"))
    assert machine.show("binlogd", "MainPID") == pid


def _stopped(machine: Machine) -> None:
    """In good order, within the unit's own deadline."""
    begin = time.monotonic()
    machine.run("systemctl", "stop", "binlogd")
    assert time.monotonic() - begin < 60
    assert machine.show("binlogd", "Result") == "success"
    assert machine.show("binlogd", "ExecMainStatus") == "0"


def _upgraded(machine: Machine, newer: Path) -> None:
    """While it runs: it stops, its files change, it goes on; the edited configuration stays."""
    machine.run("systemctl", "start", "binlogd")
    before = machine.run("cat", CONFIG)
    machine.run("dpkg", "-i", "--force-confdef", "--force-confold", str(newer))
    assert machine.status_of("test", "-e", "/usr/lib/binlogd/next") == 0
    assert machine.run("cat", CONFIG) == before
    assert "# next" in machine.run("cat", f"{CONFIG}.dpkg-dist")
    assert machine.status_of("test", "-e", "/run/binlogd-upgrade") != 0
    until("runs again", lambda: ready(machine))
    # One that does not run is not started by an upgrade.
    machine.run("systemctl", "stop", "binlogd")
    machine.run("dpkg", "-i", "--force-confdef", "--force-confold", str(newer))
    assert machine.show("binlogd", "ActiveState") == "inactive"


def _equal(machine: Machine) -> None:
    """The tables hold what the stream says, through all that."""
    machine.run(
        "setpriv", "--reuid=binlogd", "--regid=binlogd", "--clear-groups",
        "binlogd", "run", "--until-caught-up", "--config", CONFIG,
    )  # fmt: skip
    said = machine.run(
        "/usr/lib/binlogd/bin/python3", "-c", CHECK, "--config", CONFIG,
        "--changes", str(CHANGES),
    )  # fmt: skip
    assert f"OK, {CHANGES} changes, 15 tables equal" in said


def _queried(machine: Machine, query_package: Path) -> None:
    """The refusal names the package that is missing; with it, and with it alone, there are rows."""
    asked = ("binlogd", "query", QUERY, "--csv", "--config", CONFIG)
    assert "apt install ./binlogd-query_*.deb" in machine.run(*asked, check=False)
    machine.run("dpkg", "-i", str(query_package))
    head, count = machine.run(*asked).split()
    assert head == "rows"
    assert int(count) > 0
    machine.run("dpkg", "-r", "binlogd-query")
    assert "apt install ./binlogd-query_*.deb" in machine.run(*asked, check=False)


def _removed(machine: Machine, package: Path) -> None:
    """Removed while it runs: it stops. Purged: its data stay, unless they are asked for."""
    machine.run("systemctl", "start", "binlogd")
    machine.run("dpkg", "-r", "binlogd")
    assert machine.show("binlogd", "ActiveState") in ("inactive", "failed")
    assert machine.status_of("test", "-e", "/usr/lib/binlogd") != 0
    assert machine.status_of("test", "-e", CONFIG) == 0
    said = machine.run("dpkg", "--purge", "binlogd")
    assert "/var/lib/binlogd stays" in said
    assert machine.status_of("test", "-e", CONFIG) != 0
    assert machine.status_of("test", "-d", "/var/lib/binlogd/warehouse") == 0
    machine.run("dpkg", "-i", str(package))
    machine.run("env", "BINLOGD_PURGE_DATA=yes", "dpkg", "--purge", "binlogd")
    for path in ("/var/lib/binlogd", "/etc/binlogd", "/usr/lib/binlogd"):
        assert machine.status_of("test", "-e", path) != 0, path
