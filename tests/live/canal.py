"""Canal as a reader of MariaDB."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.jars import classpath, jars_of
from tests.live.processes import Processes
from tests.live.program import HOST
from tests.live.sources import Source

_CLASS = "RunCanal"
_UNKNOWN = (
    "not in Canal's grammar of statements: it misses the change, then puts the values of rows "
    "under the columns of before, or stays before the first row that has more of them"
)
_UNREAD = re.compile(r"## parse this event has an error.*?(?=\n[0-9]+ \[)", re.DOTALL)
"""Canal's word for an event, with the exceptions behind it."""


class Canal(Processes):
    """Its place in the log and the tables' definitions are in a seed's folder."""

    name = "Canal"
    format = "canal-json"
    left_out: Mapping[str, str] = {}
    unread: Mapping[str, str] = {
        r"ADD COLUMN IF NOT EXISTS|ALTER TABLE IF EXISTS": _UNKNOWN,
        r"^SET STATEMENT|^/\*M?!|\bWAIT \d": _UNKNOWN,
        r"LIKE `[^`.]*\.": "a name with a dot in it: it looks for a table of another database",
    }

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(folder, bootstrap)
        self._path = self.compiled(_CLASS, classpath(jars_of("canal") / "canal"))

    def command(self, name: str, topic: str, seed: int, source: Source) -> Sequence[str]:
        own = self.folder / name
        own.mkdir()
        return [
            "-Xmx384m", f"-Djava.io.tmpdir={own}", "-cp", self._path, _CLASS,
            HOST, str(source.port), "live", "live", rf"{source.prefix}{seed}_.*\..*", str(own),
            str(700_000 + seed % 100_000), self.bootstrap, topic,
        ]  # fmt: skip

    def stuck(self, log: str) -> str:
        return unread_event(log)


def unread_event(log: str) -> str:
    """The exceptions of the last event that Canal could not read, which it tries for ever."""
    found = _UNREAD.findall(log)
    return found[-1] if found else ""
