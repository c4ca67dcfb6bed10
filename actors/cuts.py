"""Makes cuts: has the versions of a pipeline's tables tagged, then lists the cut in one row.

The row's commit alone makes a cut visible, whole or not at all. The table that lists cuts is a
target like any other: its mark is the last cut's number, so that a daemon that was replaced can't
add a cut, and no cut is listed twice. What fails is not tried again here: a table that can't be
tagged is left out by name, and a cut that can't be listed is followed by the next one.

Where an operator had the log read again, a row of its own says so first: it withdraws the cuts that
have some of that. They stay as they are, and as readable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import CutFigures, Figures, bare
from actors.cut_in_making import CutInMaking, withdrawal
from actors.own_table import OwnTable
from actors.runtime.mailbox import Tick
from actors.together import APART, Gathering, Together
from changes.model.cuts_table import SCHEMA
from changes.model.model import TargetName
from offsets.cuts import Boundary, Cut, KeepCuts, next_number
from offsets.position import NO_OFFSET, TopicPartition

OTHERS_CUT = "another daemon has listed a cut of this number"


class CutsLogic:
    """One per pipeline that is cut. Deterministic; see ``handle``."""

    def __init__(
        self,
        pipeline: str,
        group: str,
        table: TargetName,
        keep: KeepCuts,
        unix_s: Callable[[], float],
        run_id: str,
        routed: Callable[[str], bool] = lambda target: True,
        skips: bool = False,
        together: Together = APART,
        again: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """``table``: lists the cuts of this pipeline and ``group``. ``unix_s``: the time, in Unix
        seconds. ``run_id`` makes names of writes unique over restarts. ``routed``: whether a route
        may lead to a target; what is recorded of others is of an earlier configuration. ``skips``:
        a cut that is without some table is not listed. ``together``: whose targets come to a
        cut in one transaction. ``again``: from these positions on an operator has had the
        log read again; cuts that have more are withdrawn before another is made."""
        self._pipeline, self._keep = pipeline, keep
        self._table = OwnTable("cuts", pipeline, group, table, SCHEMA, run_id)
        self._unix_s, self._routed, self._skips = unix_s, routed, skips
        self._me, self._together = Address(pipeline, "cuts"), together
        self._committer = Address(pipeline, "committer")
        self._gathering = Gathering(self._me, together)
        self._unlisted, self._again = True, dict(again or {})
        self._first: int | None = None
        self._tagged: dict[str, str] = {}
        self._making: CutInMaking | None = None
        self._made: Cut | None = None
        self._error: str | None = None
        self._failing_since: float | None = None

    def handle(self, message: object, now: float) -> list[fx.OwnTableEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case msg.WriteBatch():
                return self._gathering.take(message, now)
            case msg.PipelineStops():
                return self._gathering.stop()
            case msg.CutAwaits():
                return self._gathering.awaits(message, now)
            case msg.Forget():
                return self._gathering.forget(message)
            case msg.NotTogether():
                return self._gathering.not_together(message, now)
            case msg.CutReached():
                self._gathering.over()
                return self._reached(message)
            case msg.Opened():
                self._table.opened(message)
                return self._begin()
            case msg.Tagged(target):
                return self._answered(str(target), None)
            case msg.Failed(target, _, reason):
                if target != self._table.name:
                    return self._answered(str(target), bare(str(target), reason))
                return self._give_up(reason)
            case msg.OwnStaged():
                return self._write(message)
            case msg.OwnNotStaged(reason):
                return self._give_up(reason)
            case msg.Written(state=state):
                listed_before = state is not None and state.covered
                return self._give_up(OTHERS_CUT) if listed_before else self._written()
            case Tick():
                begins = self._again and self._making is None
                begun = self._make(withdrawal(self._again)) if begins else []
                return [*begun, *self._gathering.due(now)]
            case Figures():
                return [fx.Reply(CutFigures(self._made, self._error, self._failing_since))]
            case _:
                raise TypeError(f"an actor for cuts does not know {message!r}")

    def _reached(self, reached: msg.CutReached) -> list[fx.OwnTableEffect]:
        versions = {n: v for n, v in reached.versions.items() if self._routed(n)}
        unrouted = dict.fromkeys(
            reached.versions.keys() - versions, "no route leads to it any more"
        )
        reached = replace(reached, versions=versions, left_out={**reached.left_out, **unrouted})
        if self._making is not None:
            return [self._not_made("the cut before it is not listed yet")]
        if self._again:
            return self._make(withdrawal(self._again))
        made = self._made
        if made is not None and (made.versions, made.left_out) == (
            reached.versions,
            reached.left_out,
        ):
            self._well()
            return []  # no table has changed
        if not (reached.versions or reached.left_out):
            return []  # none was written yet
        if self._skips and reached.left_out:
            return [self._not_made(_reasons(reached.left_out))]
        return self._make(reached)

    def _make(self, reached: msg.CutReached) -> list[fx.OwnTableEffect]:
        self._making = CutInMaking(reached)
        return self._begin() if self._table.is_open else [self._table.open()]

    def _begin(self) -> list[fx.OwnTableEffect]:
        """The last number is known."""
        if self._making is None or not self._making.withdraws:
            return self._tag()
        if self._table.last == NO_OFFSET:  # no cut was ever made
            return self._withdrawn()
        self._making.begin(next_number(self._table.last, self._unix_s()), {}, ())
        return self._stage()

    def _tag(self) -> list[fx.OwnTableEffect]:
        """Have each table tagged that has another version than at its last tag."""
        making = self._making
        assert making is not None
        last = None if self._table.last == NO_OFFSET else self._table.last
        new = making.begin(next_number(last, self._unix_s()), self._tagged, self._together.untagged)
        above = self._listed_below(last, making.number) if self._unlisted else None
        if not new:
            return self._stage()
        return [
            fx.Tell(
                WRITERS,
                msg.TagVersion(
                    TargetName.parse(name), version, making.number, self._keep, self._me, above
                ),
            )
            for name, version in new.items()
        ]

    def _listed_below(self, last: int | None, number: int) -> int | None:
        """The number beyond which tags are of no cut. Where none is listed, that is known of this
        run's alone: others may be of cuts in another table, and go when they are old."""
        if last is not None:
            return last
        found, self._first = self._first, self._first or number
        return None if found is None else found - 1

    def _answered(self, target: str, problem: str | None) -> list[fx.OwnTableEffect]:
        making = self._making
        if making is None or target not in making.awaited:
            return []
        making.answered(target, problem)
        return [] if making.awaited else self._stage()

    def _stage(self) -> list[fx.OwnTableEffect]:
        making = self._making
        assert making is not None
        self._unlisted = True
        lacks = not making.versions or (self._skips and making.left_out)
        if lacks and not making.withdraws:
            return self._give_up(_reasons(making.left_out))
        return [fx.StageOwn(making.cut(self._pipeline))]

    def _write(self, staged: msg.OwnStaged) -> list[fx.OwnTableEffect]:
        making = self._making
        assert making is not None
        making.staged(staged.path)
        return [self._table.write(making.number, staged, 1)]

    def _written(self) -> list[fx.OwnTableEffect]:
        """The cut is visible."""
        making = self._making
        if making is None:
            return []
        asked, before = making.reached.asked, self._made
        self._table.written(making.number)
        if making.withdraws:
            where = {str(source): at for source, at in sorted(asked.positions.items())}
            said = fx.Log("warning", "cuts_withdrawn", {"by": making.number, "above": where})
            return [said, *self._withdrawn()]
        self._made = making.cut(self._pipeline)
        self._tagged = dict(making.versions)
        self._unlisted, self._making = False, None
        self._well()
        fields = {
            "cut": making.number,
            "boundary": asked.boundary,
            "positions": {str(source): at for source, at in sorted(asked.positions.items())},
            "tables": len(making.versions),
            "left_out": making.left_out,
        }
        news = making.left_out and (before is None or before.left_out != making.left_out)
        quiet = "info" if self._may_divide(before, asked.boundary) else "debug"
        return [fx.Log("warning" if news else quiet, "cut", fields)]

    def _withdrawn(self) -> list[fx.OwnTableEffect]:
        """None stands that has some of what is read again."""
        again, self._again, self._making = self._again, {}, None
        return [fx.Tell(self._committer, msg.CutsWithdrawn(again))]

    def _may_divide(self, before: Cut | None, boundary: Boundary) -> bool:
        """Whether readers of a database may see half of a transaction now, for it took long to
        come; not where the log tells no ends at all."""
        ends = before is not None and before.boundary == "transaction"
        return ends and boundary == "time" and bool(self._together.sinks)

    def _give_up(self, reason: str) -> list[fx.OwnTableEffect]:
        """The next cut reads the table again: somebody may have moved its mark."""
        making, self._making = self._making, None
        self._table.lost()
        left = (making.path,) if making is not None and making.path is not None else ()
        return [*([fx.RemoveStaged(left)] if left else []), self._not_made(reason)]

    def _well(self) -> None:
        self._error = self._failing_since = None

    def _not_made(self, reason: str) -> fx.Log:
        self._error = reason
        if self._failing_since is None:
            self._failing_since = self._unix_s()
        return fx.Log("warning", "cut_not_made", {"reason": reason})


def _reasons(left_out: Mapping[str, str]) -> str:
    """Why tables are left out, the first one in full."""
    first, *others = [": ".join(each) for each in sorted(left_out.items())]
    return f"{first}; {len(others)} more" if others else first
