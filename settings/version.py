"""The version of this binlogd, as the installed package has it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("binlogd")
    except PackageNotFoundError:
        return "not installed"


VERSION = _installed()
"""A checkout on the path that nobody installed says ``not installed``."""
