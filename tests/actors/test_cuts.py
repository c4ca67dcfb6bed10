"""Cuts, from the boundary to the row that lists them."""

from __future__ import annotations

from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.figures import CutFigures, Figures
from actors.contract.writes import TargetState
from actors.cuts import OTHERS_CUT, CutsLogic
from actors.runtime.mailbox import Tick
from actors.together import APART, Together
from changes.model.model import TargetName
from offsets.cuts import Boundary, Cut, KeepCuts
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition

P0, LANE = TopicPartition("t", 0), TopicPartition("(cuts of p, g)", 0)
TABLE, A, B = (TargetName.parse(f"lake.d.{name}") for name in ("cuts", "a", "b"))
KEEP, ME = KeepCuts(3600.0, 7), Address("p", "cuts")
NOW = 1_800_000_000


def reached(
    offset: int = 10, left_out: Any = None, boundary: Boundary = "transaction", **versions: str
) -> msg.CutReached:
    asked = msg.CutAsked({P0: 1}, {P0: offset}, boundary, 7, "x")
    return msg.CutReached(asked, {f"lake.d.{n}": v for n, v in versions.items()}, left_out or {})


class Maker:
    """Feeds the logic, and answers what a sink does at once."""

    def __init__(
        self, last: int | None = None, together: Together = APART, again: Any = None
    ) -> None:
        own = "p", "g", TABLE, KEEP, lambda: NOW, "run"
        self.logic = CutsLogic(*own, together=together, again=again)
        self.marks = {} if last is None else {LANE: last}
        self.refused: dict[TargetName, str] = {}
        self.tags: list[msg.TagVersion] = []
        self.batches: list[Any] = []
        self.cuts: list[Cut] = []
        self.removed: list[str] = []
        self.logs: list[fx.Log] = []
        self.withdrawn: list[Any] = []
        self.away = self.covered = False

    def feed(self, message: object) -> None:
        for effect in self.logic.handle(message, 0.0):
            match effect:
                case fx.Tell(Address("p", "committer"), msg.CutsWithdrawn(positions)):
                    self.withdrawn.append(positions)
                case fx.Tell(to, request):
                    assert to == WRITERS
                    self.feed(self.answer(request))
                case fx.StageOwn(cut):
                    self.cuts.append(cut)
                    self.feed(msg.OwnStaged("file", ()))
                case fx.RemoveStaged(paths):
                    self.removed += paths
                case fx.Log():
                    self.logs.append(effect)
                case _:
                    raise AssertionError(effect)

    def answer(self, request: object) -> object:
        match request:
            case msg.OpenTarget(target):
                assert target == TABLE
                return msg.Opened(target, TargetState(hwms=self.marks))
            case msg.TagVersion(target):
                self.tags.append(request)
                if target in self.refused:
                    return msg.Failed(target, msg.FailureKind.REFUSED, self.refused[target])
                return msg.Tagged(target)
            case msg.WriteBatch(batch):
                self.batches.append(request)
                if self.away:
                    return msg.Failed(TABLE, msg.FailureKind.RETRY, "the catalog is away")
                state = TargetState(covered=self.covered)
                return msg.Written(batch.target, request.epochs, request.through, state)
        raise AssertionError(request)

    @property
    def said(self) -> list[str]:
        return [str(log.fields.get("reason", log.event)) for log in self.logs]


def test_all_tables_are_tagged_then_the_row_is_written() -> None:
    """Its table's mark is the cut's number, so that nobody else lists one beside it."""
    maker = Maker()
    maker.feed(reached(a="11", b="21"))
    wanted = [(A, "11"), (B, "21")]
    assert [(tag.target, tag.version) for tag in maker.tags] == wanted
    assert {(tag.number, tag.keep, tag.reply_to, tag.above) for tag in maker.tags} == {
        (NOW, KEEP, ME, None)
    }
    (write,) = maker.batches
    assert write.batch.lanes == {LANE: Span(NO_OFFSET, NOW)}
    assert (write.committer, write.reply_to) == (None, ME)
    (cut,) = maker.cuts
    assert cut.positions == {P0: 10}
    assert cut.versions == {"lake.d.a": "11", "lake.d.b": "21"}
    (figures,) = maker.logic.handle(Figures(), 0.0)
    assert figures == fx.Reply(CutFigures(cut, None))


def test_only_what_changed_is_tagged_again() -> None:
    """A table that rests pays nothing, and where all rest there is no cut."""
    maker = Maker()
    maker.feed(reached(a="11", b="21"))
    maker.feed(reached(12, a="11", b="21"))
    assert len(maker.cuts) == 1
    maker.feed(reached(14, a="11", b="22"))
    assert [tag.target for tag in maker.tags[2:]] == [B]
    assert maker.tags[2].above is None
    assert [cut.number for cut in maker.cuts] == [NOW, NOW + 1]
    assert maker.batches[1].batch.lanes == {LANE: Span(NOW, NOW + 1)}
    assert maker.cuts[1].versions == {"lake.d.a": "11", "lake.d.b": "22"}


def test_numbers_go_on_where_the_table_says() -> None:
    """Also where the clock was set back. What a crash tagged beyond that is removed."""
    maker = Maker(last=NOW + 500)
    maker.feed(reached(a="11"))
    assert [(tag.number, tag.above) for tag in maker.tags] == [(NOW + 501, NOW + 500)]


def test_where_no_cut_is_listed_no_tag_is_removed() -> None:
    """The tags may be of cuts that another table lists: the pipeline had another name, or another
    table of cuts."""
    maker = Maker()
    maker.away = True
    maker.feed(reached(a="11"))
    maker.away = False
    maker.feed(reached(a="11"))
    assert [tag.above for tag in maker.tags] == [None, NOW - 1]


def test_a_row_that_is_there_already_is_another_daemons() -> None:
    """Nothing is written twice here: it has the number by chance, and lists other tables."""
    maker = Maker(last=NOW - 9)
    maker.covered = True
    maker.feed(reached(a="11"))
    assert maker.said == ["another daemon has listed a cut of this number"]
    (figures,) = maker.logic.handle(Figures(), 0.0)
    assert figures == fx.Reply(CutFigures(None, OTHERS_CUT, NOW))
    maker.covered = False
    maker.feed(reached(a="11"))
    assert [tag.target for tag in maker.tags] == [A, A]


def test_a_table_that_can_not_be_tagged_is_left_out_by_name() -> None:
    """The others are cut."""
    maker = Maker()
    maker.refused[A] = "lake.d.a: version 11 is gone"
    maker.feed(reached(a="11", b="21", left_out={"lake.d.c": "its messages are in its spill"}))
    (cut,) = maker.cuts
    assert cut.versions == {"lake.d.b": "21"}
    assert cut.left_out == {
        "lake.d.a": "version 11 is gone",
        "lake.d.c": "its messages are in its spill",
    }
    assert [log.level for log in maker.logs] == ["warning"]
    maker.refused.clear()
    maker.feed(reached(a="11", b="21"))
    assert [tag.target for tag in maker.tags[2:]] == [A]


def test_what_no_route_leads_to_any_more_is_left_out() -> None:
    """It gets no changes, and its sink may be gone from the configuration."""
    maker = Maker()
    maker.logic = CutsLogic(
        "p", "g", TABLE, KEEP, lambda: NOW, "run", lambda name: name != "lake.d.b"
    )
    maker.feed(reached(a="11", b="21"))
    (cut,) = maker.cuts
    assert cut.versions == {"lake.d.a": "11"}
    assert cut.left_out == {"lake.d.b": "no route leads to it any more"}
    assert [tag.target for tag in maker.tags] == [A]
    maker.feed(reached(12, a="11", b="21"))
    assert len(maker.cuts) == 1


def test_a_cut_that_can_not_be_listed_is_followed_by_the_next() -> None:
    """The table is read again, and what was tagged for it is removed."""
    maker = Maker(last=NOW - 9)
    maker.away = True
    maker.feed(reached(a="11"))
    assert (maker.said, maker.removed) == (["the catalog is away"], ["file"])
    (figures,) = maker.logic.handle(Figures(), 0.0)
    assert figures == fx.Reply(CutFigures(None, "the catalog is away", NOW))
    maker.away = False
    maker.feed(reached(a="11"))
    assert [tag.above for tag in maker.tags] == [NOW - 9, NOW - 9]
    assert len(maker.batches) == 2
    (figures,) = maker.logic.handle(Figures(), 0.0)
    assert figures == fx.Reply(CutFigures(maker.cuts[1], None))


def test_where_none_can_be_tagged_there_is_no_cut() -> None:
    """An empty one would say that the pipeline has no table."""
    maker = Maker()
    maker.refused[A] = "gone"
    maker.feed(reached(a="11"))
    assert (maker.cuts, maker.said) == ([], [f"{A}: gone"])
    maker.refused[B] = "away"
    maker.feed(reached(12, a="12", b="21"))
    assert maker.said[1:] == [f"{A}: gone; 1 more"]
    maker.feed(reached(13))
    assert (maker.cuts, maker.said[2:]) == ([], [])


def test_a_cut_without_some_table_is_skipped_where_each_has_to_have_all() -> None:
    """Whether that is known before tables are tagged, or one can't be; the next one has them."""
    maker = Maker()
    maker.logic = CutsLogic("p", "g", TABLE, KEEP, lambda: NOW, "run", skips=True)
    maker.feed(reached(left_out={"lake.d.b": "it is being loaded", "lake.d.c": "too"}, a="1"))
    assert maker.tags == []
    maker.refused[B] = "no such catalog"
    maker.feed(reached(a="1", b="2"))
    assert [each.fields["reason"] for each in maker.logs] == [
        "lake.d.b: it is being loaded; 1 more", "lake.d.b: no such catalog",
    ]  # fmt: skip
    assert maker.cuts == []
    maker.refused.clear()
    maker.feed(reached(a="1", b="2"))
    (cut,) = maker.cuts
    assert cut.versions == {"lake.d.a": "1", "lake.d.b": "2"}


def test_one_cut_is_made_at_a_time() -> None:
    """One whose tables are being tagged is not mixed with the next."""
    logic = CutsLogic("p", "g", TABLE, KEEP, lambda: NOW, "run")
    assert len(logic.handle(reached(a="11"), 0.0)) == 1
    (log,) = logic.handle(reached(12, a="12"), 1.0)
    assert isinstance(log, fx.Log)
    assert log.fields["reason"] == "the cut before it is not listed yet"


def test_readers_of_a_database_may_see_a_transaction_that_took_long_to_come() -> None:
    """They have no other cut to read: the log says so. In a lake each cut says it of itself."""
    databases = Together(frozenset({"lake"}))
    for together, level in ((databases, "info"), (APART, "debug")):
        maker = Maker(together=together)
        maker.feed(reached(10, boundary="time", a="1"))
        maker.feed(reached(20, a="2"))
        maker.feed(reached(30, boundary="time", a="3"))
        maker.feed(reached(40, boundary="time", a="4"))
        assert [log.level for log in maker.logs] == ["debug", "debug", level, "debug"]


def test_what_is_read_again_withdraws_cuts_before_another_is_made() -> None:
    """One row of no table, listed under the next number; and again where that failed."""
    maker = Maker(last=NOW + 5, again={P0: 4})
    maker.away = True
    maker.feed(Tick())
    assert maker.said == ["the catalog is away"]
    assert (maker.removed, maker.withdrawn) == (["file"], [])
    maker.away = False
    maker.feed(reached(10, a="11"))
    assert maker.tags == []
    assert maker.said[1:] == ["cuts_withdrawn"]
    withdrawal = maker.cuts[-1]
    assert (withdrawal.number, withdrawal.boundary) == (NOW + 6, "withdrawn")
    assert (withdrawal.positions, withdrawal.versions, withdrawal.left_out) == ({P0: 4}, {}, {})
    maker.feed(Tick())
    assert maker.withdrawn == [{P0: 4}]
    maker.feed(reached(10, a="11"))
    assert [(cut.number, cut.boundary) for cut in maker.cuts[2:]] == [(NOW + 7, "transaction")]
    assert [tag.above for tag in maker.tags] == [NOW + 6]


def test_where_none_was_made_none_is_withdrawn() -> None:
    maker = Maker(again={P0: 4})
    maker.feed(Tick())
    assert (maker.cuts, maker.logs, maker.withdrawn) == ([], [], [{P0: 4}])
    maker.feed(reached(10, a="11"))
    assert [cut.boundary for cut in maker.cuts] == ["transaction"]
