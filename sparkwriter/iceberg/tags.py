"""What binlogd says beside a table's rows: tags of cuts, and through when gates have found it
complete.

A tag is a name for the snapshot that a table has in a cut, which keeps it from expiry. Tags are
refs beside main, moments are properties. A write of the table that meets such a commit looks again
and is repeated: main is where it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from offsets.cuts import KeepCuts, needed, number_of, tag_of
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.look import MODE, NOT_OURS
from sparkwriter.iceberg.publish import change_refs
from sparkwriter.session.java_api import Java

VALID_THROUGH = "binlogd.valid-through."
"""Properties of tables begin so, and end with a gate's name."""


def tag_version(
    catalog: LakeCatalog, target: TargetName, version: str, number: int, keep: KeepCuts
) -> None:
    """Tag a snapshot and remove tags that are not needed. See ``actors.contract.ports.Tags``."""
    table = _ours(catalog, target)
    if table is None:
        raise TargetRefused(f"there is no table to tag as {tag_of(number)}")
    name, snapshot = tag_of(number), int(version)

    def unneeded() -> list[int]:
        tags = {number, *_numbers(table)}
        return sorted(tags - needed(tags, number, keep))

    def done() -> bool:
        if (at := table.head(name)) not in (None, snapshot):
            raise TargetRefused(f"the tag {name} names snapshot {at}, not {snapshot}")
        return at == snapshot and not _tags(table, unneeded())

    def change(builder: Java) -> None:
        if not table.holds(snapshot):
            raise TargetRefused(f"snapshot {snapshot} is gone, so it can't be tagged as {name}")
        builder.setRef(name, table.tag_at(snapshot))
        for old in _tags(table, unneeded()):
            builder.removeRef(old)

    change_refs(table, change, done)


def untag_above(catalog: LakeCatalog, target: TargetName, above: int) -> None:
    """Remove the tags of later cuts. See ``actors.contract.ports.Tags``."""
    table = _ours(catalog, target)
    if table is None:
        return

    def later() -> list[str]:
        return _tags(table, [number for number in _numbers(table) if number > above])

    def change(builder: Java) -> None:
        for tag in later():
            builder.removeRef(tag)

    change_refs(table, change, lambda: not later())


def say_through(catalog: LakeCatalog, target: TargetName, moments: Mapping[str, str]) -> bool:
    """Set a property for each gate, and remove those of others. See
    ``actors.contract.ports.Tags``."""
    table = _ours(catalog, target)
    if table is None:
        return False
    wanted = {f"{VALID_THROUGH}{gate}": moment for gate, moment in moments.items()}

    def said() -> dict[str, str]:
        return {n: v for n, v in table.properties().items() if n.startswith(VALID_THROUGH)}

    def change(builder: Java) -> None:
        if wanted:
            builder.setProperties(wanted)
        if gone := said().keys() - wanted:
            builder.removeProperties(gone)

    if said() != wanted:
        change_refs(table, change, lambda: said() == wanted)
    return True


def _ours(catalog: LakeCatalog, target: TargetName) -> LakeTable | None:
    table = catalog.load(target)
    if table is not None and table.property(MODE) is None:
        raise TargetRefused(NOT_OURS)
    return table


def _numbers(table: LakeTable) -> set[int]:
    """The cuts of which the table has tags."""
    found = map(number_of, table.branches())
    return {number for number in found if number is not None}


def _tags(table: LakeTable, numbers: list[int]) -> list[str]:
    """Those of the names that are tags: a branch of such a name is somebody's work."""
    return [name for name in map(tag_of, numbers) if table.is_tag(name)]
