"""Which position of a replica shows all up to a position of its primary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daemon.config.config import Config
from databases import opening as primaries
from databases.base.errors import DatabaseRefused
from databases.base.port import Moment
from databases.opening import Primary

FIRST, COPY = "jdbc:mysql://first/", "jdbc:mysql://copy/"


class At:
    """A database that stands there."""

    def __init__(self, position: str | None, unix_us: int = 0) -> None:
        self._moment = Moment(unix_us, position)

    def moment(self) -> Moment:
        return self._moment


def of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, primary: str | None, replica: str | None
) -> Primary:
    """A replica's primary, each at its position; the clock of the first shows 7."""
    databases = {
        "first": {"url": FIRST, "user": "u"},
        "copy": {"url": COPY, "user": "u", "role": "replica", "primary": "first"},
    }
    config = Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "x:1"},
            "sink": {"lake": {"kind": "sqlite", "path": "x.db"}},
            "daemon": {"state_dir": str(folder)},
            "database": databases,
            "pipeline": {
                "p": {"topics": ["t"], "format": "canal-json", "target": "lake.{database}.{table}"}
            },
        }
    )
    monkeypatch.setattr(primaries, "open_database", lambda *_: At(primary, 7))
    here: Any = At(replica)
    return Primary(config, "copy", here)


@pytest.mark.parametrize(
    ("primary", "replica", "shown"),
    [
        ("mysql:1:bin.000009:900", "mysql:1:bin.000009:899", False),
        ("mysql:1:bin.000009:900", "mysql:1:bin.000009:900", True),
        ("mysql:1:bin.000009:900", "mysql:1:bin.000010:4", True),
        ("mysql:1:bin.999999:900", "mysql:1:bin.1000000:4", True),
        ("mysql:1:bin.000010:4", "mysql:1:bin.000009:900", False),
        ("lsn:77:1000", "lsn:77:999", False),
        ("lsn:77:1000", "lsn:77:1000", True),
    ],
)
def test_positions_are_compared_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, primary: str, replica: str, shown: bool
) -> None:
    """Files by their numbers, which grow beyond six digits; then places."""
    known = of(tmp_path, monkeypatch, primary, replica)
    assert known.shown(known.position()) is shown
    assert known.moment().unix_us == 7


@pytest.mark.parametrize(
    ("primary", "replica", "why"),
    [
        ("mysql:1:bin.000009:900", "mysql:2:bin.000009:900", "in another log"),
        ("mysql:1:bin.000009:900", "mysql:1:log.000009:900", "in another log"),
        ("lsn:77:1000", "lsn:78:1000", "in another log"),
        (None, "mysql:1:bin.000009:900", "what it lacks is unknown"),
        ("mysql:1:bin.000009:900", None, "what it lacks is unknown"),
    ],
)
def test_what_can_t_be_compared_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    primary: str | None,
    replica: str | None,
    why: str,
) -> None:
    """It may lack anything."""
    known = of(tmp_path, monkeypatch, primary, replica)
    with pytest.raises(DatabaseRefused, match=why):
        known.shown(known.position())
