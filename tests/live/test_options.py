"""The options of ``make live``: what goes together, and what is refused by name."""

from __future__ import annotations

import pytest

from tests.live.options import options, seeds_of
from tests.live.ways import READERS, SINKS, SOURCES, Way, ways


def test_even_seeds_are_mariadb_s_and_odd_ones_postgresql_s() -> None:
    """The kept seeds rest on it."""
    assert options([]).ways == [Way("mariadb", "debezium"), Way("postgres", "debezium")]


def test_each_database_and_each_reader_is_in_some_way() -> None:
    """And each sink can be named."""
    found = options(["--readers", ",".join(READERS), "--sinks", ",".join(SINKS)])
    assert {way.source for way in found.ways} == set(SOURCES)
    assert {way.reader for way in found.ways} == set(READERS)
    assert list(found.sinks) == list(SINKS)
    assert ways(["mariadb"], ["canal", "maxwell"]) == [
        Way("mariadb", "canal"), Way("mariadb", "maxwell"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--wire xml", "--wire: 'xml' is none of json, avro, proto, jsonschema"),
        ("--wire avro --readers canal --sources mariadb", "others than json with debezium alone"),
        ("--sources oracle", "--sources: 'oracle' is none of mariadb, postgres"),
        ("--readers canal --sources postgres", "canal reads mariadb alone"),
        ("--readers canal --sources mariadb,postgres", "postgres: none of canal reads it"),
        ("--sinks ,", "--sinks: one of iceberg, "),
        ("--seeds x", "--seeds: 3,7,10-19, 30- or regression, not 'x'"),
        ("--wire avro --collector", "others than json with debezium alone"),
        ("--faults handover", "--faults handover: with --collector or --readers adopted alone"),
        ("--partitions 0", "--partitions: 1 to 8"),
        ("--partitions 2 --readers maxwell --sources mariadb", "above 1 with debezium alone"),
    ],
)
def test_what_there_is_not_is_refused_by_name(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 2, and what there is."""
    with pytest.raises(SystemExit) as ended:
        options(words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_seeds_are_a_list_or_a_first_one() -> None:
    """A list ends by itself, and a first one by the time."""
    assert seeds_of("3,7,10-12") == ([3, 7, 10, 11, 12], 0)
    assert seeds_of("30-") == ((), 30)
    assert options(["--seeds", "regression"]).shape.beside == 10


def test_a_collector_is_a_reader_and_hand_overs_are_its_only_faults() -> None:
    """Of both databases."""
    found = options(["--collector", "--faults", "handover"])
    assert found.ways == [Way("mariadb", "collector"), Way("postgres", "collector")]
    assert (found.shape.handovers, found.shape.kills) == (True, False)
    assert options(["--collector"]).shape.kills
    assert not options(["--collector", "--faults", "handover", "--calm"]).shape.handovers
