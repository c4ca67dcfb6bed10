"""The Debian packages, built once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import tool

CHECKOUT = Path(__file__).parents[3]
CHECK = (
    "import binlogd, runpy, sys; binlogd.use_code(); sys.argv[:1] = ['check']; "
    "runpy.run_module('demo.check', run_name='__main__')"
)
"""A program for the package's Python: ``demo.check``, which is not on its path."""


@pytest.fixture(scope="session")
def package() -> Path:
    """The package of this checkout, built again if anything has changed."""
    for name in ("dh", "dpkg-buildpackage"):
        tool(name)
    build = str(CHECKOUT / "packaging/deb/build.sh")
    ran = subprocess.run([build], capture_output=True, text=True, timeout=1800)
    assert ran.returncode == 0, ran.stderr
    return CHECKOUT / ran.stdout.split()[-1]


@pytest.fixture(scope="session")
def query_package(package: Path) -> Path:
    """What is beside it: binlogd-query."""
    return package.with_name(package.name.replace("binlogd_", "binlogd-query_"))
