"""The systemd units: valid, hardened, and made for a JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import tool

UNITS = Path(__file__).parents[2] / "systemd"
DAEMONS = {"binlogd.service": "binlogd.service", "binlogd@.service": "binlogd@shop.service"}
GATES = {
    "binlogd-gates.service": "binlogd-gates.service",
    "binlogd-gates@.service": "binlogd-gates@shop.service",
}
NAMES = DAEMONS | GATES


@pytest.fixture
def analyze() -> str:
    """The tool; where it is missing the units are not looked at."""
    return tool("systemd-analyze")


@pytest.fixture(params=sorted(NAMES))
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit whose program is there, under the name of an instance."""
    program = tmp_path / "bin" / "binlogd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (UNITS / request.param).read_text()
    assert "/opt/binlogd/.venv/bin/binlogd" in text
    path = tmp_path / NAMES[request.param]
    path.write_text(text.replace("/opt/binlogd/.venv/bin/binlogd", str(program)))
    return path


def test_systemd_takes_the_units(analyze: str, unit: Path) -> None:
    """No unknown key, no value that is ignored: it says nothing."""
    ran = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_exposure_stays_under_two(analyze: str, unit: Path) -> None:
    """Of ten; what is left is the network, and memory that a JIT must write and run."""
    ran = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=19", "--no-pager", str(unit)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-200:]


def settings(name: str) -> dict[str, str]:
    lines = (UNITS / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("name", sorted(DAEMONS))
def test_the_drain_is_left_its_time(name: str) -> None:
    """SIGTERM reaches the daemon alone, and SIGKILL comes after the drain and the last commit."""
    from daemon.app.supervisor import STOP_RESERVE_S
    from daemon.config.sections import DaemonSection

    found = settings(name)
    assert found["KillMode"] == "mixed"
    assert int(found["TimeoutStopSec"]) >= DaemonSection().drain_timeout_s + STOP_RESERVE_S
    assert found["RestartPreventExitStatus"] == "1"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_jit_is_left_its_memory(name: str) -> None:
    """With MemoryDenyWriteExecute no JVM starts."""
    assert "MemoryDenyWriteExecute" not in settings(name)


@pytest.mark.parametrize(("single", "template"), [sorted(DAEMONS), sorted(GATES)])
def test_instances_share_nothing(single: str, template: str) -> None:
    """Each has a configuration, a user and a state directory of its own; the rest is the same."""
    one, many = settings(single), settings(template)
    differing = {key for key in one if one[key] != many[key]}
    assert differing == {"Description", "ExecStart", "User", "StateDirectory", "WorkingDirectory"}
    assert all("%i" in many[key] for key in differing)


@pytest.mark.parametrize(("gates", "daemon"), [*zip(sorted(GATES), sorted(DAEMONS), strict=True)])
def test_gates_are_in_the_daemons_state_and_as_shut_in(gates: str, daemon: str) -> None:
    """One user, one state directory; the same of all that it may not do. Its marks are readable."""
    one, other = settings(gates), settings(daemon)
    differing = {key for key in one if one[key] != other.get(key)}
    assert differing == {
        "Description", "Documentation", "Type", "ExecStart", "TimeoutStopSec", "UMask",
    }  # fmt: skip
