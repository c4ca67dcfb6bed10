"""The target's side of a comparison, where the target is a table of another database.

Its columns may have other types than the source's, such as ``datetime`` for a moment: both stand
for one type of the lake, and are compared by the text that each value of that has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from daemon.databases.checksums import Checksums
from daemon.databases.port import Database, Key, SourceColumn, SourceTable, Texts
from daemon.databases.selects import MOST_KEYS
from daemon.jobs.verify.columns import NotComparable, Pair, Shape
from daemon.jobs.verify.database_side import DatabaseSide
from sparkwriter.sql.arrow_texts import natural, read
from sparkwriter.sql.checksums import TextColumn
from sparkwriter.sql.forms import Form

_OWN_FORM = ("json", "jsonb")
"""Types that may print a text otherwise than it was written."""


class StoredSide(DatabaseSide):
    """``sides.TargetSide``. One thread's."""

    def __init__(
        self,
        database: Database,
        table: SourceTable,
        shape: Shape,
        told: Callable[[int], None],
    ) -> None:
        """``table``: the target's, as its database describes it; ``shape``: of ``stored_shape``."""
        self._pairs, self._key_pairs = shape.pairs, shape.keys
        self._columns = [_column(table, pair) for pair in shape.pairs]
        places = [shape.pairs.index(pair) for pair in shape.keys]
        texts = [
            TextColumn(database.text(column), pair.free)
            for column, pair in zip(self._columns, shape.pairs, strict=True)
        ]
        only, self._deleted = "", [c for c in table.columns if c.name == shape.deleted]
        for column in self._deleted:
            only = f"COALESCE({database.text(column)}, '0') = '0'"
        names = tuple(self._columns[place].name for place in places)
        table = replace(table, columns=tuple(self._columns), keys=names)
        # A row without a hash adds nothing at the source: here it must add something.
        keys = [texts[place] for place in places]
        sql = Checksums(database, table, texts, keys, unhashed=1)
        super().__init__(database, table, sql, told, only)

    def rows(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        """See ``Side``."""
        wanted, count, found = set(keys), len(self._columns), dict[Key, Texts]()
        columns = [*self._columns, *self._deleted]
        for at in range(0, len(keys), MOST_KEYS):
            asked = self._database.rows(self._table, columns, keys[at : at + MOST_KEYS])
            for key, texts in asked.items():
                if key in wanted and texts[count:] != ("1",):
                    found[key] = texts[:count]
            self._told(0)
        return found

    def keys(self, keys: Sequence[Key], names: Sequence[str]) -> pa.Table:
        """See ``TargetSide``."""
        found = {}
        for pair, texts in zip(self._key_pairs, zip(*keys, strict=True), strict=True):
            form = natural(pair.type)
            values = [bytes.fromhex(text) for text in texts] if form is Form.HEX else list(texts)
            found[pair.name] = read(form, pair.type, pa.array(values))
        return pa.table({name: found[name] for name in names})


def stored_shape(shape: Shape, table: SourceTable) -> Shape:
    """The comparison without columns that the target's database prints otherwise than they were
    written. Raises NotComparable where a key is among these."""
    pairs, notes = [], list(shape.notes)
    for pair in shape.pairs:
        column = _column(table, pair)
        if column.form is None:
            notes.append(f"not compared: column {pair.name}: {column.refused}")
        elif column.type in _OWN_FORM:
            notes.append(f"not compared: column {pair.name}: {column.type} has a form of its own")
        else:
            pairs.append(pair)
    if any(pair not in pairs for pair in shape.keys):
        raise NotComparable(f"the key can't be compared: {'; '.join(notes)}")
    whole = shape.whole and len(pairs) == len(shape.pairs)
    return replace(shape, pairs=tuple(pairs), notes=tuple(notes), whole=whole)


def _column(table: SourceTable, pair: Pair) -> SourceColumn:
    """The target's column of a pair, with the form that gives the text of the lake's value."""
    lower = pair.name.lower()
    for column in table.columns:
        if column.name.lower() == lower and column.form is not None:
            form = natural(pair.type)
            return replace(column, form=form if form in (Form.TEXT, Form.BITS) else column.form)
        if column.name.lower() == lower:
            return column
    raise NotComparable(f"column {pair.name} was dropped or renamed by somebody else")
