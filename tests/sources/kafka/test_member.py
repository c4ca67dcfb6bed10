"""Under which id a daemon is a member, and what it does when the id is another's."""

from __future__ import annotations

import pytest

from sources.kafka.member import AGAIN_S, FENCED, IN_USE, PATIENCE_S, Claim, member_settings
from sources.kafka.settings import consumer_settings

STATE = "0123456789ab"


def test_the_id_is_of_pipeline_and_state_directory() -> None:
    """The same after a restart, another one for every other daemon and pipeline."""
    made = member_settings({"client.rack": "r1"}, "shop", STATE)
    assert made == {"group.instance.id": f"binlogd-shop-{STATE}", "client.rack": "r1"}


def test_an_id_holds_the_signs_that_kafka_allows() -> None:
    """A pipeline's name may have others."""
    made = member_settings({}, "Läden/1", STATE)
    assert made["group.instance.id"] == f"binlogd-L_den_1-{STATE}"


def test_the_configurations_own_id_wins() -> None:
    """Whoever names members by hand goes on doing so."""
    made = member_settings({"group.instance.id": "mine"}, "shop", STATE)
    assert consumer_settings(made, "g")["group.instance.id"] == "mine"


def test_an_empty_id_is_none() -> None:
    """A member that leaves at its end; librdkafka is not even given the key."""
    made = member_settings({"group.instance.id": ""}, "shop", STATE)
    assert "group.instance.id" not in consumer_settings(made, "g")


@pytest.mark.parametrize("text", [FENCED, IN_USE])
def test_the_words_by_which_librdkafka_tells(text: str) -> None:
    """It gives no code; its own text for the code is what is looked for, and must be one."""
    assert "nstance" in text


def test_a_member_that_is_put_out_is_told_why_and_what_to_do() -> None:
    """Nothing is tried again: the other one would be put out in turn."""
    claim = Claim("g", "id-1")
    said = claim.lost(f"Fatal error: {FENCED}: Fatal consumer error", now=0.0)
    assert said is not None
    for part in ("'g'", "'id-1'", "copy of the state directory", "`id`", "`binlogd run`"):
        assert part in said
    assert not claim.is_due(now=1e9)


def test_a_member_whose_session_was_over_has_put_itself_out() -> None:
    """By its own commits of before; however often the old client says so, the id is claimed once,
    and whoever has it then has it rightly."""
    claim = Claim("g", "id-1")
    claim.session_over()
    assert claim.lost(FENCED, now=0.0) is None
    assert claim.lost(FENCED, now=0.5) is None
    assert not claim.is_due(now=AGAIN_S - 0.1)
    assert claim.is_due(now=AGAIN_S)
    assert "another daemon joined with this id" in (claim.lost(FENCED, now=2.0) or "")


def test_a_session_that_was_over_is_forgotten_once_the_group_has_taken_the_member() -> None:
    """Who puts it out from then on is another."""
    claim = Claim("g", "id-1")
    claim.session_over()
    claim.granted()
    assert "another daemon joined with this id" in (claim.lost(FENCED, now=0.0) or "")


def test_an_id_in_use_is_claimed_again_for_a_while() -> None:
    """By a process that was killed it is in use until its session is over; told once each time."""
    claim = Claim("g", "id-1", patience_s=10.0)
    assert claim.lost(IN_USE, now=0.0) is None
    assert not claim.is_due(now=AGAIN_S - 0.1)
    assert claim.is_due(now=AGAIN_S)
    assert not claim.is_due(now=AGAIN_S)
    assert claim.lost(IN_USE, now=9.9) is None
    said = claim.lost(IN_USE, now=10.0)
    assert said is not None
    for part in ("in use for 10 s", "alive", "`id`", "`binlogd run`"):
        assert part in said


def test_patience_begins_anew_once_the_group_has_taken_the_member() -> None:
    """Each loss of the id is one by itself."""
    claim = Claim("g", "id-1", patience_s=10.0)
    claim.lost(IN_USE, now=0.0)
    claim.granted()
    assert not claim.waits
    assert claim.lost(IN_USE, now=1000.0) is None


def test_patience_outlasts_every_session_that_kafka_grants_by_default() -> None:
    """``group.consumer.max.session.timeout.ms`` is 60 s: a restart after ``kill -9`` never ends by
    its own former session."""
    assert PATIENCE_S > 60.0 + AGAIN_S


def test_any_other_end_of_the_client_is_told_as_it_is() -> None:
    """Nobody can know what it takes."""
    assert Claim("g", "id-1").lost("Fatal error: ?", now=0.0) == "Kafka client: Fatal error: ?"
