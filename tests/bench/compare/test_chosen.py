"""What ONLY names."""

from __future__ import annotations

import pytest

from bench.compare.__main__ import chosen


def names(only: str) -> list[str]:
    return [workload.name for workload in chosen(0.1, only, "", "")]


def test_databases_are_three_workloads() -> None:
    """Both databases, and freshness."""
    assert names("databases") == [
        "databases-postgresql", "databases-mariadb", "databases-fresh",
    ]  # fmt: skip
    assert names("databases many") == ["many", *names("databases")]


def test_loads_are_two_workloads() -> None:
    """Keys that are even, and skewed ones."""
    assert names("load") == ["load-even", "load-skewed"]
    assert names("load-even databases") == [*names("databases"), "load-even"]


def test_a_load_amid_changes_is_a_workload_of_its_own() -> None:
    assert names("replicate") == ["replicate"]


def test_topics_are_two_workloads() -> None:
    """Debezium's, in Avro and keyed over partitions."""
    assert names("topics") == ["wide-avro", "wide-keyed"]


def test_without_a_word_only_lakes_are_compared() -> None:
    """A machine needs no database for it, and no registry."""
    assert "wide" in names("")
    named = ("databases", "load", "replicate", "wide-avro", "wide-keyed")
    assert not [name for name in names("") if name.startswith(named)]


def test_one_of_them_can_be_named() -> None:
    """By its own name."""
    assert names("databases-mariadb") == ["databases-mariadb"]


def test_an_unknown_name_is_refused() -> None:
    """Aloud."""
    with pytest.raises(ValueError, match="no workload is named database"):
        names("database")
