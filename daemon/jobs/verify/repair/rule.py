"""Which rows may be written beside a stream, whatever is still to come of it. Pure.

A row of the source is the row that the target must have *at the place where its stream stands*, if
two things hold. The stream has come to where the log had all that the read could see; and the log
has no change of the row from a margin before the read up to that place. Then it doesn't matter what
comes behind it: partial rows, changed keys, deletions find the row that they were made on.

A row that was read, and that the log changes behind the place, would not do: a key that went is not
in the source any more, and deleting its old row would take what the change has yet to move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daemon.databases.port import Key, Texts
from daemon.jobs.verify.looks import Ends, Lookout
from offsets.position import NO_OFFSET


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows as the source had them, None where it had none. ``begins``: where the log ended a margin
    before they were read, or their comparison did; ``ends``: below it is all that they show."""

    rows: Mapping[Key, Texts | None]
    begins: Ends
    ends: Ends

    @property
    def keys(self) -> Sequence[Key]:
        """Of all rows."""
        return list(self.rows)


def made_ready(keys: Sequence[Key], since: Ends, lookout: Lookout) -> Ready:
    """Read rows while the pipeline runs, and wait until the target holds all that they show.

    ``since``: up to where the comparison has followed the keys. Raises NotPassed.
    """
    calm = lookout.begins()
    begins = {source: min(at, since.get(source, at)) for source, at in calm.items()}
    found = lookout.source(keys)
    ends = lookout.passed(begins)
    lookout.held(ends)
    return Ready({key: found.get(key) for key in keys}, begins, ends)


def places(ready: Ready, frontiers: Ends, marks: Ends) -> Ends:
    """Where a target's stream stands: all below is in the target, and nothing else. ``marks`` are
    the target's: another member of the group may have gone on behind the frontiers."""
    sources = {*ready.begins, *marks}
    return {
        source: max(frontiers.get(source, 0), marks.get(source, NO_OFFSET) + 1)
        for source in sources
    }


def calm_keys(ready: Ready, at: Ends, lookout: Lookout) -> list[Key]:
    """The keys whose rows the target must have where its stream stands."""
    moved = set(lookout.changed(ready.keys, ready.begins, at))
    return [key for key in ready.keys if key not in moved]


def stands_behind(ready: Ready, at: Ends) -> bool:
    """Whether the stream has gone back below what the rows show: an operator did that."""
    return any(at.get(source, 0) < end for source, end in ready.ends.items())
