"""`uvx` and `pipx run` of a wheel: the command, without an installation that stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.conftest import CHECKOUT

LOCK = CHECKOUT / "requirements-sql.txt"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both programs, in an environment of their own."""
    venv = tmp_path_factory.mktemp("runners") / "env"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=120)
    wanted = CHECKOUT / "tests" / "install" / "runners.txt"
    pip = [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "--no-deps", "-r", wanted]
    subprocess.run([*pip, *locked], check=True, timeout=300)
    return venv / "bin"


@pytest.mark.parametrize("words", [("uvx", "--from"), ("pipx", "run", "--spec")], ids=" ".join)
def test_a_wheel_is_run_at_once(
    words: tuple[str, ...], runners: Path, sql_wheel: Path, tmp_path: Path
) -> None:
    """In the versions of the lock; what they keep is in the test's folder. The wheel with Spark
    differs by half a gigabyte of pyspark alone."""
    program, *options = words
    environ = os.environ | {
        "PATH": f"{runners}:{os.environ['PATH']}",
        "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_CONSTRAINT": str(LOCK),
        "PIPX_HOME": str(tmp_path / "pipx"), "PIP_CONSTRAINT": str(LOCK),
        "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never",
    }  # fmt: skip
    ran = subprocess.run(
        [runners / program, *options, sql_wheel, "binlogd", "--version"],
        env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "binlogd 0.1.0\n"
