"""Which schema is asked for next: a pure rule, times are arguments."""

from __future__ import annotations

from actors.contract import messages as msg
from actors.contract.addresses import Address
from changes.formats.wire.schemas import SchemaId
from sources.registry.errors import RegistryAway
from sources.registry.schedule import Schedule

FETCHER, OTHER = Address("shop", "fetcher"), Address("other", "fetcher")
SEVEN, EIGHT, NINE = (SchemaId("id", str(number)) for number in (7, 8, 9))
DOWN = RegistryAway("unreachable", "down")


def schedule() -> Schedule:
    return Schedule("main", not_found_s=60.0, check_every_s=300.0)


def test_those_that_messages_wait_for_come_first() -> None:
    found = schedule()
    found.want(FETCHER, SEVEN, kept=True, now=0.0)
    found.want(FETCHER, EIGHT, kept=False, now=1.0)
    assert found.take_due(1.0, 1) == [EIGHT]
    assert found.take_due(1.0, 4) == [SEVEN]
    assert found.take_due(1.0, 4) == []  # they are being asked


def test_a_registry_that_is_away_is_asked_for_one_schema_and_seldom() -> None:
    found = schedule()
    for identity in (SEVEN, EIGHT):
        found.want(FETCHER, identity, kept=False, now=0.0)
    assert found.take_due(0.0, 4) == [SEVEN, EIGHT]
    assert found.failed(SEVEN, DOWN, 0.0) == [(FETCHER, msg.RegistryState("main", "down"))]
    assert found.failed(EIGHT, DOWN, 0.0) == []  # it is known
    assert found.take_due(0.5, 4) == []
    waits = []
    now = 0.0
    for _ in range(6):
        now = found.next_at() or now
        waits.append(now)
        (one,) = found.take_due(now, 4)
        found.failed(one, DOWN, now)
    assert waits[-1] - waits[-2] == 30.0


def test_a_schema_that_the_registry_fails_for_keeps_no_other_waiting() -> None:
    """Others are fetched, and kept ones compared, between the questions for it."""
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    found.want(FETCHER, EIGHT, kept=False, now=0.5)
    found.want(FETCHER, NINE, kept=True, now=0.5)
    answered: dict[SchemaId, float] = {}
    while answered.keys() != {EIGHT, NINE}:
        now = found.next_at()
        assert now is not None
        assert now < 10.0
        for identity in found.take_due(now, 1):
            if identity == SEVEN:
                found.failed(SEVEN, DOWN, now)
            else:
                found.kept(identity, now)
                answered[identity] = now


def test_a_schema_that_the_registry_fails_for_is_not_asked_for_without_an_end() -> None:
    """Though each answer for another one says that the registry is there."""
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    for number in range(20, 40):
        found.want(FETCHER, SchemaId("id", str(number)), kept=True, now=0.0)
    asked = 0
    while due := found.take_due(0.0, 4):
        asked += len(due)
        assert asked <= 21
        for identity in due:
            if identity == SEVEN:
                found.failed(SEVEN, DOWN, 0.0)
            else:
                found.kept(identity, 0.0)


def test_all_kept_ones_are_compared_when_it_answers_again() -> None:
    found = schedule()
    found.want(FETCHER, SEVEN, kept=True, now=0.0)
    found.take_due(0.0, 4)
    found.kept(SEVEN, 0.0)
    found.want(FETCHER, EIGHT, kept=False, now=1.0)
    found.take_due(1.0, 4)
    found.failed(EIGHT, DOWN, 1.0)
    (one,) = found.take_due(100.0, 4)
    assert one == EIGHT
    assert found.kept(EIGHT, 100.0) == [
        (FETCHER, msg.RegistryState("main", None)),
        (FETCHER, msg.SchemasKept((EIGHT,))),
    ]
    assert found.take_due(100.0, 4) == [SEVEN]


def test_a_kept_one_is_compared_now_and_then() -> None:
    found = schedule()
    found.want(FETCHER, SEVEN, kept=True, now=0.0)
    assert found.take_due(0.0, 4) == [SEVEN]
    assert found.kept(SEVEN, 0.0) == []
    assert found.next_at() == 300.0
    assert found.take_due(299.0, 4) == []
    assert found.take_due(300.0, 4) == [SEVEN]


def test_what_is_missing_is_given_up_after_the_grace_and_said_once() -> None:
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    now = 0.0
    said: list[object] = []
    while not said:
        found.take_due(now, 4)
        said = [message for _, message in found.not_found(SEVEN, "none", now)]
        now = (said and now) or found.next_at() or now
    assert said == [msg.SchemaMissing(SEVEN, "none (for 60 s)")]
    assert now == 60.0
    assert found.not_found(SEVEN, "none", 120.0) == []
    assert found.kept(SEVEN, 130.0) == [(FETCHER, msg.SchemasKept((SEVEN,)))]


def test_an_outage_is_no_word_that_it_is_missing() -> None:
    """The grace begins again: the registry may have been on its way down."""
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    found.not_found(SEVEN, "none", 0.0)
    found.failed(SEVEN, DOWN, 30.0)
    out = [message for _, message in found.not_found(SEVEN, "none", 61.0)]
    assert out == [msg.RegistryState("main", None)]


def test_who_comes_late_has_a_grace_of_its_own() -> None:
    """A pipeline that starts again after its schema was given up."""
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    found.not_found(SEVEN, "none", 0.0)
    found.not_found(SEVEN, "none", 60.0)
    found.want(OTHER, SEVEN, kept=False, now=70.0)
    assert found.take_due(70.0, 4) == [SEVEN]
    assert found.not_found(SEVEN, "none", 70.0) == []


def test_answers_about_what_nobody_uses_any_more_change_nothing() -> None:
    found = schedule()
    found.want(FETCHER, SEVEN, kept=False, now=0.0)
    found.take_due(0.0, 4)
    found.forget(FETCHER)
    assert found.kept(SEVEN, 1.0) == found.not_found(SEVEN, "none", 1.0) == []
    assert found.changed(SEVEN, "x", 1.0) == found.unfit(SEVEN, "x", 1.0) == []
    assert found.next_at() is None


def test_a_schema_that_can_t_be_used_is_said_at_once() -> None:
    found = schedule()
    found.want(FETCHER, NINE, kept=False, now=0.0)
    found.take_due(0.0, 4)
    assert found.unfit(NINE, "XML", 0.0) == [(FETCHER, msg.SchemaMissing(NINE, "XML"))]


def test_a_second_meaning_is_told_to_all_who_use_it() -> None:
    found = schedule()
    for user in (FETCHER, OTHER):
        found.want(user, SEVEN, kept=True, now=0.0)
    refused = msg.SchemaRefused(SEVEN, "another")
    assert found.changed(SEVEN, "another", 1.0) == [(OTHER, refused), (FETCHER, refused)]
