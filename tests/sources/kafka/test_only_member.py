"""A sink for one writer: a member stops when its group has another member."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from actors.contract.messages import Assigned
from actors.runtime.backoff import BackOff
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown
from sources.base.port import GroupMember, NotAnswered
from sources.kafka.logs import ASSIGNED_WAIT_S, OnlyMember

MINE = GroupMember("rdkafka", "/10.0.0.1", "mine")
OTHER = GroupMember("rdkafka", "/10.0.0.2", "theirs")
DYNAMIC = GroupMember("rdkafka", "/10.0.0.3", None)
SOURCE = TopicPartition("t", 0)


class Group:
    """Answers in turn; the last answer stays. ``waited_s``: how long the member has waited."""

    def __init__(self, *answers: Sequence[GroupMember] | NotAnswered) -> None:
        self._answers = list(answers)
        self.waited_s = 0.0
        self.resolved: list[list[TopicPartition]] = []

    def members(self) -> Sequence[GroupMember]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, NotAnswered):
            raise answer
        return answer

    def resolve(self, sources: list[TopicPartition]) -> Assigned:
        self.resolved.append(sources)
        return Assigned(dict.fromkeys(sources, 0), {}, {})

    def _pause(self, seconds: float) -> None:
        self.waited_s += seconds

    def _back_off(self, within_s: float) -> BackOff:
        return BackOff(within_s, clock=lambda: self.waited_s, pause=self._pause, jitter=lambda: 0.5)

    def only(self, instance_id: str = "mine", **settings: int) -> OnlyMember:
        """As a configuration makes it; without an id the member is dynamic."""
        known = {"group.instance.id": instance_id}
        known |= {name.replace("_", "."): value for name, value in settings.items()}
        return OnlyMember(self.members, "g", known, "WHY", self._back_off)

    def assign(self, *sources: TopicPartition, instance_id: str = "mine") -> Assigned:
        return self.only(instance_id).before(self.resolve)(list(sources))


@pytest.mark.parametrize(("own", "instance_id"), [(MINE, "mine"), (DYNAMIC, "")])
def test_the_only_member_reads_at_once(own: GroupMember, instance_id: str) -> None:
    """Without a wait and without a word."""
    group = Group([own])
    with capture_logs() as said:
        assert group.assign(SOURCE, instance_id=instance_id).starts == {SOURCE: 0}
    assert (group.waited_s, said) == (0.0, [])


@pytest.mark.parametrize("sources", [(SOURCE,), ()])
def test_another_member_is_an_error_that_names_it(sources: tuple[TopicPartition, ...]) -> None:
    """Also for a member that got no partition. Nothing is read from the first sight on."""
    group = Group([MINE, OTHER, DYNAMIC])
    with capture_logs() as said, pytest.raises(PositionError) as raised:
        group.assign(*sources)
    assert str(raised.value) == (
        "group 'g' has other members (rdkafka on /10.0.0.3, theirs on /10.0.0.2; one that has "
        "ended counts until its session is over), and WHY"
    )
    assert type(raised.value) is PositionError
    assert group.resolved == []
    assert [event["event"] for event in said] == ["other_members"]


def test_dynamic_members_are_all_named() -> None:
    """Nothing tells which of them is this one."""
    with pytest.raises(PositionError, match=r"\(rdkafka on /10.0.0.3, rdkafka on /10.0.0.3;"):
        Group([DYNAMIC, DYNAMIC]).assign(SOURCE, instance_id="")


def test_a_member_that_is_leaving_is_waited_for() -> None:
    """As when one daemon takes the place of another."""
    group = Group(*[[MINE, OTHER]] * 3, [MINE])
    assert group.assign(SOURCE).starts == {SOURCE: 0}
    assert 0 < group.waited_s <= ASSIGNED_WAIT_S


@pytest.mark.parametrize(("own", "instance_id"), [([MINE], "mine"), ([], "mine"), ([], "")])
def test_an_empty_group_may_be_joined(own: list[GroupMember], instance_id: str) -> None:
    """Or one in which this daemon is a static member still."""
    group = Group(own)
    group.only(instance_id).may_join()
    assert group.waited_s == 0


@pytest.mark.parametrize(
    ("other", "instance_id"), [(OTHER, "mine"), (DYNAMIC, "mine"), (DYNAMIC, "")]
)
def test_a_group_with_another_member_is_not_joined(other: GroupMember, instance_id: str) -> None:
    """The daemon that is there is not disturbed by a rebalance."""
    with pytest.raises(PositionError, match="group 'g' has other members"):
        Group([other]).only(instance_id).may_join()


def test_a_session_that_runs_out_is_waited_for() -> None:
    """As after a move to another machine, where the daemon has another id."""
    group = Group(*[[OTHER]] * 14, [])
    group.only().may_join()
    assert 30 < group.waited_s <= 50


@pytest.mark.parametrize(("session_ms", "most_s"), [(6_000, 11.0), (45_000, 50.0), (240_000, 60.0)])
def test_the_wait_is_a_session_and_bounded(session_ms: int, most_s: float) -> None:
    """It must end before the actor counts as stuck."""
    group = Group([OTHER])
    with pytest.raises(PositionError):
        group.only(session_timeout_ms=session_ms).may_join()
    assert most_s - 5 < group.waited_s <= most_s


@pytest.mark.parametrize(("away", "kind"), [(True, PositionUnknown), (False, PositionError)])
def test_a_broker_that_does_not_say_who_is_there(away: bool, kind: type[Exception]) -> None:
    """One that is away is asked again by a new client; one that refuses ends the pipeline."""
    group = Group(NotAnswered("no", away))
    with pytest.raises(PositionError, match="its members are unknown: no") as raised:
        group.assign(SOURCE)
    assert type(raised.value) is kind
    assert group.resolved == []
