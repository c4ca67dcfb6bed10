"""Makes steps from a seed: which kind, and what of it. Pure; equal seeds make equal steps.

What no reader of the stream can know is left out, by name, in LEFT_OUT; all else is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random

from tests.live.schema import Maker, Schema, Step

LEFT_OUT: Mapping[str, str] = {
    "INET4, INET6": "Debezium 3.4 ends itself on such a column",
    "names exchanged in one ALTER": "Debezium 3.4 ends itself",
    "CREATE OR REPLACE TABLE": "Debezium 3.4 ends itself",
    "PARTITION BY KEY ()": "Debezium 3.4 ends itself: its parser wants columns",
    "a statement in /*!…*/": "Debezium 3.4 does not read it, and ends with the table's next row",
    "DEFAULT x''": "Debezium 3.4 ends itself: its parser wants a digit",
    "Debezium: row images MINIMAL and NOBLOB": "it ends itself: a row lacks columns",
    "YEAR 0": "Debezium writes 1900",
    "zero dates": "Debezium writes NULL, or 1970 where the column is NOT NULL",
    "PostgreSQL: __debezium_unavailable_value": "Debezium's word for a value that is not sent",
    "PostgreSQL: names beyond ASCII": "Debezium 3.4 makes each byte of theirs a character (U+FFC3)",
    "PostgreSQL: DROP TABLE and ALTER TABLE … RENAME TO": "no statement is sent, and no row",
    "PostgreSQL: columns that change behind a table's last row": "nothing is sent of it: at each"
    " checkpoint one row of each table is touched first",
    "PostgreSQL: a publication's list or filter that changes": "rows and columns that come or go by"
    " it are not sent",
    "ON DELETE CASCADE": "the rows that go are not in the binary log",
}
"""What no reader of the stream can know, or what ends Debezium before binlogd sees anything."""

_TRIES = 1000


class Generator:
    """Draws steps. The schema moves on when the server has accepted a step. One thread's."""

    def __init__(
        self,
        seed: int,
        schema: Schema,
        kinds: Mapping[Maker, float],
        unread: Iterable[str] = (),
    ) -> None:
        """``kinds``: the makers and their weights. ``unread``: patterns of statements that are
        left out."""
        self._unread = [re.compile(pattern) for pattern in unread]
        self._rng = Random(seed)
        self._makers, self._weights = list(kinds), list(kinds.values())
        self.schema = schema

    def next(self) -> Step:
        """Draw the next step. Raises RuntimeError where no kind has one."""
        for _ in range(_TRIES):
            (maker,) = self._rng.choices(self._makers, self._weights)
            step = maker(self._rng, self.schema)
            if step is not None and not self._is_unread(step):
                return step
        raise RuntimeError("no kind of step fits this schema")

    def _is_unread(self, step: Step) -> bool:
        return any(one.search(text) for one in self._unread for text in step.statements)

    def accepted(self, step: Step) -> None:
        """The source is now as the step says."""
        self.schema = step.after
