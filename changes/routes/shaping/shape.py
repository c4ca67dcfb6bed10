"""The shape of a route: what it shows of its tables' columns, and under which names.

All names are those of the source, without regard to case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from changes.model.model import TableName
from changes.model.names import expression, is_expression
from changes.routes.expressions.reading import read, why_not_read
from changes.routes.shaping.layout import (
    fingerprint,
    salt_digest,
    sorts_of,
    transforms_of,
    unfit_layout,
)
from changes.routes.shaping.masks import SHORTEST_SALT, Mask, mask_of
from changes.routes.shaping.names import (
    HISTORY_NAMES,
    METADATA_NAMES,
    OWN_COLUMNS,
    unfit_names,
    unfit_new_name,
)

if TYPE_CHECKING:
    from changes.routes.shaping.partial import RowFilter

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a route asks for. Raises ValueError where it contradicts itself.

    ``filter`` is an expression (``changes.routes.expressions``), ``computed`` one for each new
    column. ``masks`` by column in the configuration's words; ``salt`` is a secret. ``columns``:
    these alone are shown; ``drop``: these are not. ``delete`` soft: deleted rows stay, and say so.
    ``history``: each version of a row stays.
    ``metadata`` are columns that tell where a row comes from. ``shard``: a column of the key that
    has the part of the table's name which the group of a pattern in ``shard_of`` takes.
    ``partition_by`` and ``sort_by`` (``changes.routes.shaping.layout``) have the target's names.
    """

    filter: str = ""
    computed: Pairs = ()
    masks: Pairs = ()
    rename: Pairs = ()
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    delete: Literal["hard", "soft"] = "hard"
    metadata: tuple[str, ...] = ()
    history: bool = False
    shard: str = ""
    shard_of: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    salt: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(problem)

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return self != NO_SHAPE

    @property
    def fingerprint(self) -> str:
        """What a target keeps of it, empty where it asks for nothing."""
        said = {
            "filter": self.filter.strip(),
            "computed": {name.lower(): text.strip() for name, text in self.computed},
            "columns": None if self.columns is None else _lower(self.columns),
            "drop_columns": _lower(self.drop),
            "delete": "" if self.delete == "hard" else self.delete,
            "metadata": sorted(self.metadata),
            "shard": self.shard,
            "history": self.history,
            "mask": {name.lower(): mask_of(words).text for name, words in self.masks},
            "mask_salt": salt_digest(self.salt),
            "rename": {name.lower(): new for name, new in self.rename},
            "partition_by": [part.text.lower() for part in transforms_of(self.partition_by)],
            "sort_by": [part.text.lower() for part in sorts_of(self.sort_by)],
        }
        return fingerprint(said)

    @property
    def named(self) -> dict[str, str]:
        """The columns that it names, in small letters, each with the key that names it."""
        named: dict[str, str] = {}
        for key, names in (
            ("drop_columns", self.drop),
            ("columns", self.columns or ()),
            ("rename", (name for name, _ in self.rename)),
            ("mask", (name for name, _ in self.masks)),
            *((f"computed.{name}", read(text).columns) for name, text in self.computed),
            ("filter", read(self.filter).columns if self.filter else ()),
            ("sort_by", self._of_source(self.laid_out["sort_by"])),
            ("partition_by", self._of_source(self.laid_out["partition_by"])),
        ):
            named |= {name.lower(): key for name in names}
        return named

    @property
    def typed(self) -> frozenset[str]:
        """The columns whose types matter to it, in small letters."""
        masked = frozenset(name.lower() for name, _ in self.masks)
        laid = self._of_source(self.laid_out["partition_by"])
        return masked | self.computes_with | {name.lower() for name in laid}

    @property
    def laid_out(self) -> dict[str, tuple[str, ...]]:
        """The columns of the target by which its files are laid out, by key."""
        return {
            "partition_by": tuple(part.column for part in transforms_of(self.partition_by)),
            "sort_by": tuple(part.column for part in sorts_of(self.sort_by)),
        }

    def _of_source(self, shown: Iterable[str]) -> tuple[str, ...]:
        """Of columns of the target those that the source has, by its names."""
        old = {new.lower(): name for name, new in self.rename}
        made = {*self.made, *OWN_COLUMNS} - old.keys()
        return tuple(old.get(name.lower(), name) for name in shown if name.lower() not in made)

    @property
    def computes_with(self) -> frozenset[str]:
        """The columns of its expressions, in small letters: each row must carry them."""
        texts = [text for _, text in self.computed] + ([self.filter] if self.filter else [])
        return frozenset().union(*(read(text).columns for text in texts))

    @property
    def row_filter(self) -> RowFilter | None:
        """The filter as a target has it, whose rows are those that pass; None without one."""
        if not self.filter or self.history:
            return None
        from changes.routes.shaping.partial import RowFilter  # late, as in read

        uses = sorted(read(self.filter).columns)
        if not all(self.shows(name) and self.mask_of(name) is None for name in uses):
            return RowFilter(self.filter)
        return RowFilter(self.filter, tuple((name, self.name_of(name)) for name in uses))

    @property
    def made(self) -> dict[str, str]:
        """The names that it gives, in small letters, each with the key that gives it."""
        made = {new.lower(): "rename" for _, new in self.rename}
        made |= dict.fromkeys(self.metadata, "metadata")
        made |= {self.shard.lower(): "shard"} if self.shard else {}
        made |= dict.fromkeys(HISTORY_NAMES, "history") if self.history else {}
        made |= {"_deleted": "delete"} if self.delete == "soft" else {}
        return made | {name.lower(): "computed" for name, _ in self.computed}

    def mask_of(self, column: str) -> Mask | None:
        """How a column is masked."""
        lower = column.lower()
        return next((mask_of(words) for name, words in self.masks if name.lower() == lower), None)

    def shows(self, column: str) -> bool:
        """Whether a source's column is shown."""
        lower = column.lower()
        if self.columns is not None:
            return any(lower == name.lower() for name in self.columns)
        return all(lower != name.lower() for name in self.drop)

    @property
    def asks_times(self) -> bool:
        """Whether it shows when changes happened."""
        return self.history or "_source_ts" in self.metadata

    def name_of(self, column: str) -> str:
        """How a source's column is named in the target."""
        lower = column.lower()
        return next((new for old, new in self.rename if old.lower() == lower), column)

    def computed_without(self, carried: Iterable[str]) -> frozenset[str]:
        """The computed columns that need others than these."""
        here = frozenset(name.lower() for name in carried)
        return frozenset(n for n, text in self.computed if not read(text).columns <= here)

    def shard_of_table(self, table: TableName) -> str | None:
        """The table's shard, None where no pattern takes it, or its group takes nothing."""
        found = (expression(pattern).fullmatch(str(table)) for pattern in self.shard_of)
        return next((match[1] or None for match in found if match is not None), None)

    def check_keys(self, keys: Iterable[str]) -> None:
        """Raise ValueError where it takes away what tells rows apart."""
        for key in keys:
            if not self.shows(key):
                raise ValueError(f"column {key} is not shown, and is part of the key")
            mask = self.mask_of(key)
            if mask is not None and not mask.injective:
                raise ValueError(
                    f"mask: column {key}: rows are told apart by it, and only sha256 keeps two "
                    "values two"
                )


def _lower(names: Iterable[str]) -> list[str]:
    return sorted(name.lower() for name in names)


def _problems(shape: Shape) -> Iterator[str]:
    if shape.columns is not None and shape.drop:
        yield "columns and drop_columns contradict each other: set one of them"
    if shape.columns is not None and not shape.columns:
        yield "columns names no column"
    for key, names in (
        ("columns", shape.columns or ()),
        ("drop_columns", shape.drop),
        ("rename", [name for name, _ in shape.rename]),
        ("rename", [name for _, name in shape.rename]),
        ("mask", [name for name, _ in shape.masks]),
        ("computed", [name for name, _ in shape.computed]),
        ("metadata", shape.metadata),
    ):
        yield from unfit_names(key, names)
    for _, new in shape.rename:
        yield from unfit_new_name("rename", new)
    for name, _ in shape.computed:
        yield from unfit_new_name("computed", name)
    yield from _unfit_expressions(shape)
    yield from _unfit_shard(shape)
    if unknown := [name for name in shape.metadata if name not in METADATA_NAMES]:
        yield f"metadata: {unknown[0]} is unknown; allowed: {', '.join(METADATA_NAMES)}"
    if shape.history and shape.delete == "soft":
        yield 'history and delete = "soft" contradict each other: a history shows what was there'
    if shape.filter and shape.delete == "soft":
        yield (
            'filter and delete = "soft" contradict each other: a row that leaves the filter goes, '
            "one that is deleted stays"
        )
    for key, pairs in (("rename", shape.rename), ("mask", shape.masks)):
        hidden = [name for name, _ in pairs if not shape.shows(name)]
        if hidden:
            yield f"{key}: column {hidden[0]} is not shown"
    yield from _unfit_masks(shape)
    yield from _unfit_layout(shape)


def _unfit_layout(shape: Shape) -> Iterator[str]:
    yield from unfit_layout(shape.partition_by, shape.sort_by)
    old = {new.lower(): name for name, new in shape.rename}
    for column in shape.laid_out["partition_by"]:
        mask = shape.mask_of(old.get(column.lower(), column))
        if mask is not None and not mask.injective:
            yield f"partition_by: column {column} is masked, and only sha256 keeps two values two"


def _unfit_shard(shape: Shape) -> Iterator[str]:
    if not shape.shard:
        return
    yield from unfit_new_name("shard", shape.shard)
    if not shape.shard_of:
        yield "shard: tables must say which part of a name it is, as in '/shop\\.order_([0-9]+)/'"
    for pattern in shape.shard_of:
        if not is_expression(pattern) or expression(pattern).groups != 1:
            yield (
                f"shard: {pattern!r} is no regular expression between slashes with one group, "
                "as '/shop\\.order_([0-9]+)/' is"
            )


def _unfit_expressions(shape: Shape) -> Iterator[str]:
    texts = [(f"computed.{name}", text) for name, text in shape.computed]
    for key, text in [*texts, ("filter", shape.filter)]:
        if (text or key != "filter") and (why := why_not_read(text)) is not None:
            yield f"{key}: {why}"


def _unfit_masks(shape: Shape) -> Iterator[str]:
    kinds = set()
    for name, words in shape.masks:
        try:
            kinds.add(mask_of(words).kind)
        except ValueError as error:
            yield f"mask: column {name}: {error}"
    if "sha256" not in kinds:
        if shape.salt:
            yield "mask_salt is set, and no mask is sha256"
    elif len(shape.salt) < SHORTEST_SALT:
        yield (
            f"mask: sha256 needs mask_salt, a secret of {SHORTEST_SALT} characters or more, "
            'such as mask_salt = "${credential:salt}": without it everybody can try values'
        )


NO_SHAPE = Shape()
"""A route that shows its rows as they are."""
