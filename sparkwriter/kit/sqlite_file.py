"""Whether a file of SQLite can be opened and written: a sink's own, or a lake's catalog."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from changes.model.errors import SinkUnavailable

TRIED_FOR_S = 5.0
"""How long a look at a file waits for who writes it."""


def try_file(what: str, path: Path) -> None:
    """Raise SinkUnavailable, beginning with ``what``, where the file can't be opened and written.

    One that is not there yet is made by the first start: its folder must take one.
    """
    if not path.exists():
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise SinkUnavailable(f"{what}: can't make {path}")
        return
    try:
        uri = f"file:{quote(str(path))}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=TRIED_FOR_S)
        try:
            connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SinkUnavailable(f"{what}: can't open {path}: {error}") from error
    if not os.access(path, os.W_OK):
        raise SinkUnavailable(f"{what}: can't write {path}")
