"""binlogd-sql: the same code without Spark, small, and refusing what it can't write by name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from actors.runtime.programs import free_port
from demo.broker import DevBroker
from tests.demo.test_by_hand import PAGE, PORT, commands
from tests.install.conftest import Installed

MOST_BYTES = 320_000_000
READY_WITHIN_S = 2.0
"""From the command to READY=1, of the clock and of processor time."""
STARTS = 3
MOST_CPU_S = 3.0
"""Of a whole run: half as much again as it is on a free machine."""
BUSY = 3.0
"""How many times the processor time may be where other work is beside: reading what is not in the
caches is part of it."""
BESIDE_SPARK = """
import importlib, pkgutil, sys
sys.modules["pyspark"] = sys.modules["py4j"] = None  # as if they were not installed
for room in ("settings", "offsets", "changes", "actors", "databases", "sources", "sparkwriter",
             "collector", "daemon"):
    for found in pkgutil.walk_packages(importlib.import_module(room).__path__, room + "."):
        if found.name.startswith({spark!r}) or found.name.endswith("__main__"):
            continue
        importlib.import_module(found.name)
"""
SPARKS_ROOMS = ("sparkwriter.iceberg", "sparkwriter.session", "sparkwriter.spark_sessions")
"""What may import pyspark as it is imported: it is itself imported where a sink needs Spark."""
EXPORTING = "daemon.tracing."
"""Needs packages of an extra."""


def required(wheel: Path) -> list[str]:
    """What a wheel names in METADATA, beside its version."""
    files = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in files.namelist() if name.endswith("METADATA"))
    lines = files.read(metadata).decode().splitlines()
    return [line for line in lines if line.startswith("Requires-Dist: ")]


def test_it_is_the_same_code_without_pyspark(wheel: Path, sql_wheel: Path) -> None:
    """File by file; what they require differs by one line."""
    whole, sql = zipfile.ZipFile(wheel), zipfile.ZipFile(sql_wheel)
    ours = [name for name in whole.namelist() if ".dist-info/" not in name and ".data/" not in name]
    assert ours == [
        name for name in sql.namelist() if ".dist-info/" not in name and ".data/" not in name
    ]
    assert all(whole.read(name) == sql.read(name) for name in ours)
    assert set(required(wheel)) - set(required(sql_wheel)) == {"Requires-Dist: pyspark~=4.1.4"}
    assert set(required(sql_wheel)) < set(required(wheel))


def test_only_sparks_rooms_import_pyspark() -> None:
    """All others are imported where there is none."""
    program = BESIDE_SPARK.replace("{spark!r}", repr((*SPARKS_ROOMS, EXPORTING)))
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_both_in_one_environment_are_refused(wheel: Path, sql_wheel: Path, tmp_path: Path) -> None:
    """They are the same files: whichever is removed takes those of the other along."""
    venv = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=60)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--quiet"]
    install = [*pip, "--disable-pip-version-check", "install", "--no-deps", "--no-index"]
    subprocess.run([*install, wheel], check=True, timeout=60)
    subprocess.run([*install, sql_wheel], check=True, timeout=60)
    ran = subprocess.run([venv / "bin" / "binlogd"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert "has both binlogd and binlogd-sql" in ran.stderr
    assert "run `pip uninstall --yes binlogd binlogd-sql`" in ran.stderr


def test_jars_are_not_fetched_without_pyspark() -> None:
    """What fetches them is pyspark's: a folder may have them, for a broker of the daemon's own."""
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from actors.runtime.jars import JarsError, ivy_jar\n"
        "try: ivy_jar()\n"
        "except JarsError as problem: print(problem)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "`binlogd setup --from FOLDER`" in said.stdout
    assert "install binlogd instead of binlogd-sql" in said.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, sql_wheel: Path) -> Installed:
    """On a machine where no program is Java."""
    folder = tmp_path_factory.mktemp("sql")
    return Installed(folder, sql_wheel, "requirements-sql.txt", {"PATH": _without_java(folder)})


def _without_java(folder: Path) -> str:
    """A folder of programs that has just a shell."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "bash").symlink_to("/bin/bash")
    return str(programs)


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(1500)
def test_sqlite_from_the_wheel_alone(installed: Installed, tmp_path: Path) -> None:
    """The README's commands, the size, the start, and what is refused."""
    size = sum(
        path.lstat().st_size for path in installed.bin.parent.rglob("*") if not path.is_dir()
    )
    print(f"binlogd-sql: {size / 1e6:.0f} MB installed")
    assert size < MOST_BYTES
    with DevBroker(tmp_path / "kafka") as broker:
        _, *before, run, query = (
            command.replace(f"127.0.0.1:{PORT}", broker.bootstrap) for command in commands()
        )
        for command in before:
            installed.run("bash", "-c", command, within_s=120)
        config = installed.folder / "config.toml"
        config.write_text(config.read_text().replace(PAGE, f"127.0.0.1:{free_port()}"))
        installed.run("bash", "-c", run, within_s=120)
        assert "tea" in installed.run("bash", "-c", query, within_s=120)
        _starts_quickly(installed)
        _is_ready_quickly(installed)
        _lake_is_refused(installed, broker.bootstrap)


def _starts_quickly(installed: Installed) -> None:
    """From the command to a daemon that has read all there is, and its end."""
    busier = _busier()
    begun, usage = time.monotonic(), installed.cpu_s()
    installed.run("binlogd", "run", "--until-caught-up", within_s=60)
    spent = installed.cpu_s() - usage
    print(
        f"started, caught up, ended: {time.monotonic() - begun:.1f} s, {spent:.1f} s of processor"
    )
    assert spent < MOST_CPU_S * busier


def _busier() -> float:
    """What a bound for a free machine is multiplied with on this one."""
    return 1.0 if os.getloadavg()[0] < (os.cpu_count() or 1) else BUSY


def _is_ready_quickly(installed: Installed) -> None:
    """As a service manager sees it. The quickest of some starts: other work makes them slower."""
    busier = _busier()
    starts = [_start(installed) for _ in range(STARTS)]
    cpu_s, took_s = (min(each) for each in zip(*starts, strict=True))
    print(f"ready: {took_s:.1f} s, {cpu_s:.1f} s of processor")
    assert cpu_s < READY_WITHIN_S * busier
    assert took_s < READY_WITHIN_S or busier > 1.0


def _start(installed: Installed) -> tuple[float, float]:
    """Processor time and seconds from the command to READY=1."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind(str(installed.folder / "notify"))
        begun = time.monotonic()
        daemon = subprocess.Popen(
            ["binlogd", "run"],
            cwd=installed.folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=installed.environ | {"NOTIFY_SOCKET": manager.getsockname()},
        )  # fmt: skip
        try:
            while b"READY=1" not in manager.recv(4096).split(b"\n"):
                pass
            took_s = time.monotonic() - begun
            return _cpu_s(daemon.pid), took_s
        finally:
            daemon.terminate()
            assert daemon.wait(60) == 0
            (installed.folder / "notify").unlink()


def _cpu_s(pid: int) -> float:
    """What a running process has used, and its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return own + sum(_cpu_s(int(child)) for task in tasks for child in task.read_text().split())


def _lake_is_refused(installed: Installed, bootstrap: str) -> None:
    """By its key, with the commands that lead out; and jars, which pyspark's Ivy would fetch."""
    (installed.folder / "lake.toml").write_text(
        f'[kafka]\nbootstrap.servers = "{bootstrap}"\n[sink.lake]\nkind = "iceberg"\n'
        '[sink.lake.catalog]\ntype = "hadoop"\nwarehouse = "lake"\n'
        '[pipeline.shop]\ntopics = ["shop"]\nformat = "auto"\n'
        'target = "lake.{database}.{table}"\n'
    )
    for words in (["run"], ["check-config"], ["tables", "list"]):
        said = installed.refused("binlogd", *words, "--config", "lake.toml")
        assert "sink.lake.kind: iceberg is written with Spark" in said
        assert "`pip uninstall --yes binlogd-sql`" in said
