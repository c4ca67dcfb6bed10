"""The wheels, built once for the tests of a session, and an environment for one of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
WHEELS = CHECKOUT / "setup" / "wheels.py"


def tracked(*folders: str) -> set[str]:
    """The files of these folders that belong to the project."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name for name in found.stdout.split("\0") if name and (CHECKOUT / name).exists()}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Those of ``make wheel``: binlogd's and binlogd-sql's."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        [sys.executable, WHEELS, folder],
        check=True, timeout=300, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip
    (whole,), (sql,) = folder.glob("binlogd-*.whl"), folder.glob("binlogd_sql-*.whl")
    return whole, sql


@pytest.fixture(scope="session")
def wheel(wheels: tuple[Path, Path]) -> Path:
    """The one with Spark."""
    return wheels[0]


@pytest.fixture(scope="session")
def sql_wheel(wheels: tuple[Path, Path]) -> Path:
    """The one without."""
    return wheels[1]


class Installed:
    """A wheel in an environment of its own, away from the checkout, with the packages of a lock."""

    def __init__(self, folder: Path, wheel: Path, lock: str, environ: dict[str, str]) -> None:
        """``environ``: beside ``PATH``, which begins with the environment's programs."""
        self.folder = folder
        self.bin = folder / "env" / "bin"
        path = os.pathsep.join((str(self.bin), environ.get("PATH", os.environ["PATH"])))
        self.environ = {"HOME": os.environ["HOME"], **environ, "PATH": path}
        self.run(sys.executable, "-m", "venv", "--without-pip", str(self.bin.parent), within_s=60)
        self.install("--require-hashes", "-r", str(CHECKOUT / "requirements-build.txt"))
        locked = ("--require-hashes", "--no-build-isolation", "-r", str(CHECKOUT / lock))
        self.install(*locked)
        self.install("--no-index", str(wheel))
        self.pip("uninstall", "--yes", "setuptools", "wheel")  # they have built pyspark

    def install(self, *what: str) -> None:
        """Have pip install just that."""
        self.pip("install", "--no-deps", *what)

    def pip(self, *words: str) -> None:
        """Run the checkout's pip on this environment: it has none, as it needs none."""
        pip = (sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--quiet")
        self.run(*pip, "--disable-pip-version-check", *words, within_s=900)

    def run(self, *command: str, within_s: float) -> str:
        """Run a command there; its standard output. Fails with what it said on standard error."""
        ran = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True,
            timeout=within_s,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stdout

    def refused(self, *command: str) -> str:
        """Run a command that ends with status 2; what it says of that."""
        ran = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 2, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stderr

    @staticmethod
    def cpu_s() -> float:
        """Processor time that the commands of this process have taken so far."""
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime
