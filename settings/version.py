"""The version of this binlogd, as the installed package has it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

DISTRIBUTIONS = ("binlogd", "binlogd-sql")
"""The names that this code is installed by: one of them (``packaging/wheel``)."""


def _installed() -> str:
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"


VERSION = _installed()
"""A checkout on the path that nobody installed says ``not installed``."""
