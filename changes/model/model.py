"""The vocabulary of a change stream as values: tables, columns, schemas, targets, errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from changes.model.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

OP = "__binlogd_op"
"""Column of an upsert batch: ``U`` (the row is now this), ``D`` (the key is gone) or ``LEFT``."""

LEFT = "L"
"""The route's filter leaves the row out: to a target it is a delete. It has its values until the
batch is written, for a later row of its key may need them."""

HAS_PREFIX = "__binlogd_has_"
"""``__binlogd_has_<column>``: true where the change carried the column (absent is not null)."""

FROM = "__binlogd_from"
"""Column of an upsert batch: not null where a row came from another key.

What such a row lacks is what the row of the old key, ``FROM_PREFIX + <key column>``, had before
the row of this number in the table (counted from 0). In a folded table that number is always 0:
what the target stores, before this batch."""

FROM_PREFIX = "__binlogd_from_"
"""``__binlogd_from_<key column>``: that part of the old key, null where ``FROM`` is."""

POSITION = "__binlogd_pos"
"""Column of an upsert batch, and of its target: where in the source the row was changed, as text
that sorts like the source's order (``changes.model.positions``). Only of formats that know it."""

ColumnTypes = tuple[tuple[str, str], ...]
"""Columns with their types in the configuration (``changes.formats.engine.configured_types``)."""

SinkOptions = tuple[tuple[str, str], ...]
"""A route's options for its kind of sink, by name."""

ZeroDates = Literal["null", "error"]
"""What becomes of MySQL's dates without a month or day, ``0000-00-00``, which no lake has."""

CHANGELOG_NAMES = ("_op", "_partition", "_offset", "_index")
"""What each row of a changelog target carries before the source's columns: ``_op`` is I, U or D,
``_index`` counts the rows of one message from 0. Their types: ``changes.model.types``."""


class TableName(NamedTuple):
    """A table as the source names it."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class TargetName(NamedTuple):
    """One table in one sink: the sink's name in the configuration, a namespace, a table."""

    sink: str
    namespace: str
    table: str

    def __str__(self) -> str:
        """Unambiguous, for it names the target's lanes: a part with a dot or a backtick is quoted
        as SQL does it, each backtick doubled."""
        return ".".join(map(_quoted, self))

    @classmethod
    def parse(cls, text: str) -> TargetName:
        """Read back what ``str()`` wrote. Raises ValueError."""
        found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", text)
        parts = [plain or quoted.replace("``", "`") for quoted, plain in found]
        name = cls(*parts) if len(parts) == 3 else None
        if name is None or str(name) != text:
            raise ValueError(f"not a target's name, sink.namespace.table: {text!r}")
        return name


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part


class Mode(Enum):
    """How a target holds its source: as equal rows, or as the list of what happened."""

    UPSERT = "upsert"
    APPEND = "append"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a target, in Arrow's types: all sinks get their schemas in these."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The source's columns in their order, and the key. No key: the target is a changelog.

    ``columns`` never holds the bookkeeping columns (``_op`` and so on): a sink adds those itself.
    """

    columns: tuple[Column, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``ALTER TABLE .. ADD COLUMN``: rows stored before it read as ``default`` from then on.

    ``default`` is a Python value that fits ``column.type``, None for NULL. ``needs_no_rows``: why
    the default of stored rows is unknown; then the table must hold none. ``fixed_bytes``: the
    length of a BINARY; its default has no zero bytes at its end, as the binary log has it.
    """

    column: Column
    default: object = None
    needs_no_rows: str | None = None
    fixed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that the source dropped. ``keep``: the target keeps it, with its values."""

    name: str
    keep: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column gets a new name; its values stay.

    ``if_exists``: a source without a column of the old name does nothing.
    """

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """The column ``old`` is redefined: another type, perhaps another name.

    ``if_exists``: as in ``RenameColumn``.
    """

    old: str
    column: Column
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """The table has another name from here on."""

    to: TableName


@dataclass(frozen=True, slots=True)
class TakeName:
    """The other end of ``RenameTable``: the table ``of`` has this one's name from here on."""

    of: TableName


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """No row is left; the columns stay."""


@dataclass(frozen=True, slots=True)
class DropTable:
    """The table is gone. ``keep``: a target keeps it until the source creates it again."""

    keep: bool = False


TableStep = AddColumn | DropColumn | RenameColumn | ChangeColumn | TruncateTable | DropTable
"""What happens inside one table."""

NameStep = RenameTable | TakeName
"""What happens to a table's name."""

DdlStep = TableStep | NameStep


@dataclass(frozen=True, slots=True)
class Redefined:
    """A column whose stored values a statement may change, without a row in the stream.

    ``column`` is its name before the statement, None: each column of text. ``type`` is the new
    type in the source's words, None where it stays. ``generated``: its values are computed.
    """

    column: str | None
    name: str = ""
    type: str | None = None
    charset: str | None = None
    not_null: bool = False
    generated: bool = False


@dataclass(frozen=True, slots=True)
class Ddl:
    """One table's part of a DDL statement, independent of the format.

    The ``steps`` of one statement happen at once: they use the names from before it. ``refused``
    names a part that binlogd does not follow (another primary key, a default that is no
    constant...); it stops the pipeline. ``unread`` says why the statement is not understood.
    Without steps or either of these it changes nothing that a target shows (an index, a comment).
    ``lenient`` are the steps with NULL as default, where only an unknown default of stored rows is
    refused. ``redefined`` are the columns whose stored values it may change. ``refused_if_gone``:
    as ``refused``, where the target's table was dropped or renamed away; ``unless_stored``: it does
    nothing where the target has one.
    """

    table: TableName
    sql: str
    steps: tuple[DdlStep, ...] = ()
    refused: str | None = None
    unread: str | None = None
    lenient: tuple[DdlStep, ...] = ()
    redefined: tuple[Redefined, ...] = ()
    refused_if_gone: str | None = None
    unless_stored: bool = False

    @property
    def renames(self) -> bool:
        """Whether it renames something: repeated, it might rename something else."""
        return any(
            isinstance(step, RenameTable | TakeName | RenameColumn)
            or (isinstance(step, ChangeColumn) and step.old.lower() != step.column.name.lower())
            for step in self.steps
        )


DropColumnPolicy = Literal["follow", "keep", "stop"]
DropTablePolicy = Literal["follow", "keep", "stop"]
TruncatePolicy = Literal["follow", "keep", "stop"]
RenameTablePolicy = Literal["follow", "stop"]
NotUnderstoodPolicy = Literal["report", "stop"]
UnknownDefaultPolicy = Literal["null", "stop"]
LossyChangePolicy = Literal["report", "stop", "quarantine", "reload"]


@dataclass(frozen=True, slots=True)
class DdlPolicy:
    """What a pipeline does with statements that remove something, or can't be followed."""

    drop_column: DropColumnPolicy = "keep"
    drop_table: DropTablePolicy = "keep"
    truncate: TruncatePolicy = "follow"
    rename_table: RenameTablePolicy = "follow"
    not_understood: NotUnderstoodPolicy = "report"
    """``report``: later rows show the table's columns."""
    unknown_default: UnknownDefaultPolicy = "stop"
    """``null``: stored rows show NULL in a new column whose default is unknown."""
    lossy_change: LossyChangePolicy = "report"
    """Of statements that may change stored values: ``report`` marks the target."""


class Kind(Enum):
    """The kind of a message, for routing."""

    ROWS = "rows"
    DDL = "ddl"
    NOTHING = "nothing"
    MULTI_ENTRY = "several"
    """Rows of several tables, or statements beside rows (``formats.base.MultiEntry``)."""
    PART = "part"
    """A part of a message that the producer cut up (``formats.base.Chunked``)."""
    PASSED_OVER = "passed over"
    """It may be a change, but its table is not certain (``Format.turn_to``): it is reported,
    not applied."""


class Head(NamedTuple):
    """A message's kind, and its table (None unless ROWS), read without decoding its rows."""

    kind: Kind
    table: TableName | None


class BadMessage(Exception):
    """A message that can't be read: the reason in one line, without its position.

    Raised by ``Format.peek`` and ``Format.ddl``, which see one message only.
    """


class BadRecord(Exception):
    """A record that can't be applied, with its place among the records of the call.

    ``index`` is that place: the records before it are good, so the caller may apply those.
    ``reason`` is one line that names table, column and value where there is one. ``of_table``: the
    record itself is good, but its table's columns or key don't match the records before it: a new
    decoder could read it. ``of_keys``: it is good, but needs changes of another key, which is in
    another partition.
    """

    def __init__(
        self, index: int, reason: str, *, of_table: bool = False, of_keys: bool = False
    ) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason
        self.of_table = of_table
        self.of_keys = of_keys


class Origins(Protocol):
    """Where the rows of decoded changes come from. Computed when it is first read."""

    @property
    def ops(self) -> bytes:
        """Of each row the letter of its change: I, U or D."""
        ...

    @property
    def records(self) -> Sequence[int]:
        """Of each row the place of its record in the call."""
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """Decoded changes of one target, in lane order, not yet folded: the result of a decoder.

    ``table`` for a keyed upsert target: ``OP`` (string), the columns of ``schema``,
    and ``HAS_PREFIX + name`` (bool) for just those columns that some row lacks. A key-changing
    update is two rows: D with the old key, then U. For a changelog target: the columns of
    ``CHANGELOG_NAMES``, then those of ``schema``. ``count`` is the number of row changes of the
    source (a key change is one). ``FROM`` and ``FROM_PREFIX + key`` of a row whose key changed name
    the row that has the columns it lacks; they are absent where no key changed. ``POSITION`` is
    there, in each row, where the decoder has ``positions``: then each row carries all columns that
    the source had at that point. ``nulled`` counts the values that are null by configuration
    because the lake can't hold them (zero dates). ``carried`` are the columns that each insert
    carries, in formats whose inserts leave out columns that took their default; None where no row
    is an insert, or inserts are always whole. ``begins`` is the letter of the first change: I, U
    or D; empty where it is unknown whether the source had the row before.
    """

    table: pa.Table
    schema: TableSchema
    mode: Mode
    count: int
    nulled: int = 0
    carried: frozenset[str] | None = None
    begins: str = ""
    origins: Origins | None = None
    """Where its rows come from; None where that is not kept."""
    cut: bool = False
    """Whether it begins amid changes of keys that may cross: a row that came to its key before them
    may be deleted."""
    alike: bool = False
    """Whether a row left a key to which one that looks the same had just moved: where these are
    two rows, the second one's change deletes the first."""
    read: Origins | None = None
    """Where the source's rows come from, before a route left some of them out; None: ``origins``
    tells."""

    @property
    def lacking(self) -> tuple[str, ...]:
        """The columns of ``schema`` that some insert does not carry."""
        if self.carried is None:
            return ()
        names = (column.name for column in self.schema.columns)
        return tuple(name for name in names if name not in self.carried)


@dataclass(frozen=True, slots=True)
class KeyBound:
    """The smallest and largest staged value of a key column, for pruning the target's files."""

    column: str
    lower: object
    upper: object


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The part of a pipeline's configuration that its format uses."""

    time_zone: str = "UTC"
    """IANA name of the zone in which the source prints TIMESTAMP values (Canal: its JVM's)."""
    zero_dates: ZeroDates = "null"
    extra: dict[str, str] = field(default_factory=dict)
    types: ColumnTypes = ()
    """Types of columns whose messages declare none, for ``explain``; decoders get their route's."""
    registry: Registry | None = None
    """The schema registry of its records; None: they have no frames."""
    by_key: bool = False
    """Each key has one partition: the changes of another key may be in another one, so that nothing
    is known of their order."""
