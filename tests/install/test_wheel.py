"""The wheel: whole, and enough for the demo in an environment that has nothing else of ours."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from actors.runtime.jars import jars_folder
from actors.runtime.java import find_java
from daemon.cli.table import COMMANDS
from tests.install.conftest import CHECKOUT, Installed, tracked

PACKAGES = (
    "settings", "offsets", "changes", "actors", "databases", "sources", "sparkwriter", "collector",
    "daemon", "demo", "jars",
)  # fmt: skip
LAUNCHER = "packaging/wheel/"
CODE = "binlogd/code/"


def test_every_file_of_the_packages_is_in_it(wheel: Path) -> None:
    """A file that setuptools was not told of is missed only where it is read: once installed."""
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if ".dist-info/" not in name and ".data/" not in name}
    launcher = {name.removeprefix(LAUNCHER) for name in tracked(LAUNCHER)}
    assert {CODE + name for name in tracked(*PACKAGES)} | launcher == inside


def test_an_environment_has_man_pages_and_completion(wheel: Path, tmp_path: Path) -> None:
    """Where man and the shells look for those of a program: beside its folder."""
    venv = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=60)
    pip = [venv / "bin" / "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--disable-pip-version-check", wheel], check=True, timeout=60)
    pages = {path.name for path in (venv / "share/man/man1").iterdir()}
    words = [command.words.replace(" ", "-") for command in COMMANDS]
    assert {"binlogd.1", "binlogd-tables.1", *(f"binlogd-{each}.1" for each in words)} <= pages
    for file in (
        "bash-completion/completions/binlogd", "zsh/site-functions/_binlogd",
        "fish/vendor_completions.d/binlogd.fish",
    ):  # fmt: skip
        assert "_BINLOGD_COMPLETE" in (venv / "share" / file).read_text()


def test_it_names_what_it_needs(wheel: Path) -> None:
    """What pip installs beside it, and the command."""
    files = zipfile.ZipFile(wheel)
    (entry,) = (name for name in files.namelist() if name.endswith("entry_points.txt"))
    assert "binlogd = binlogd:main" in files.read(entry).decode()
    (metadata,) = (name for name in files.namelist() if name.endswith("METADATA"))
    assert "Requires-Dist: pyspark~=4.1.4" in files.read(metadata).decode()


def test_packages_of_the_same_names_stay_apart(wheel: Path, tmp_path: Path) -> None:
    """python-daemon is ``daemon`` for everybody, and ours for a process that runs binlogd."""
    venv = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=60)
    pip = [venv / "bin" / "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    theirs = CHECKOUT / "tests" / "install" / "python-daemon.txt"
    subprocess.run([*pip, "--require-hashes", "-r", theirs], check=True, timeout=120)
    subprocess.run([*pip, "--no-index", wheel], check=True, timeout=60)
    names = [_daemon_of(venv, before) for before in ("", "import binlogd; binlogd.use_code(); ")]
    assert names == ["daemon/__init__.py", "binlogd/code/daemon/__init__.py"]


def _daemon_of(venv: Path, before: str) -> str:
    """Where ``import daemon`` leads to, below site-packages."""
    code = f"{before}import daemon; print(daemon.__file__)"
    ran = subprocess.run(
        [venv / "bin" / "python", "-c", code], cwd=venv, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    return ran.stdout.strip().rpartition("site-packages/")[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    return Installed(folder, wheel, "requirements.txt", {"JAVA_HOME": str(find_java().home)})


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.timeout(1500)
def test_the_demo_from_the_wheel_alone(installed: Installed) -> None:
    """No jars: refused, with the command; without a network from a folder; then equal tables."""
    binlogd = str(installed.bin / "binlogd")
    where = "import binlogd; print(binlogd.CODE)"
    assert str(installed.bin.parent) in installed.run(
        str(installed.bin / "python"), "-c", where, within_s=60
    )
    refused = subprocess.run(
        [installed.bin / "python", "-m", "binlogd.demo", "--changes", "100"],
        cwd=installed.folder, env=installed.environ, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "run `binlogd setup`" in refused.stderr
    said = installed.run(binlogd, "setup", "--from", str(jars_folder()), within_s=120)
    assert f"jars brought to: {installed.bin.parent}/share/binlogd/jars" in said
    assert "jars were there" in installed.run(binlogd, "setup", within_s=60)
    done = installed.run(
        str(installed.bin / "python"), "-m", "binlogd.demo", "--changes", "20000",
        "--var", str(installed.folder / "demo"), within_s=500,
    )  # fmt: skip
    assert "demo: OK, 20000 changes, 15 tables equal" in done
