"""The generator: pure, and the same for the same seed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.live import mariadb_kinds, options, postgres_kinds
from tests.live.flow import section
from tests.live.generator import Generator
from tests.live.history import History
from tests.live.hostile import FIRST
from tests.live.options import SHORT, kept
from tests.live.schema import Maker, Schema, Step

SEEDS = range(5)
KINDS = [mariadb_kinds.KINDS, postgres_kinds.KINDS]
for_each_database = pytest.mark.parametrize("kinds", KINDS, ids=["mariadb", "postgres"])


def steps(seed: int, kinds: Mapping[Maker, float], count: int = 150) -> list[Step]:
    """Steps of a seed, all accepted."""
    generator = Generator(seed, Schema(("a", "b")), kinds)
    made = []
    for _ in range(count):
        made.append(generator.next())
        generator.accepted(made[-1])
    return made


@for_each_database
def test_a_seed_makes_the_same_steps_each_time(kinds: Mapping[Maker, float]) -> None:
    """Or no failure could be had again."""
    for seed in SEEDS:
        assert steps(seed, kinds) == steps(seed, kinds)


@for_each_database
def test_seeds_differ(kinds: Mapping[Maker, float]) -> None:
    """Each is another walk."""
    walks = {tuple(step.statements for step in steps(seed, kinds)) for seed in SEEDS}
    assert len(walks) == len(SEEDS)


@for_each_database
def test_each_kind_comes(kinds: Mapping[Maker, float]) -> None:
    """None is there for nothing, and each is named as its maker is, for ``--without``."""
    found = {step.kind for seed in range(20) for step in steps(seed, kinds)}
    assert found == {maker.__name__ for maker in kinds}


def test_debezium_s_word_for_an_unsent_value_is_text_like_any_other_in_mariadb() -> None:
    """In text and in bytes; of PostgreSQL's no reader can tell it: see LEFT_OUT."""
    word = "__debezium_unavailable_value"
    for kinds, comes in ((mariadb_kinds.KINDS, True), (postgres_kinds.KINDS, False)):
        made = [text for seed in SEEDS for step in steps(seed, kinds) for text in step.statements]
        found = {form: any(form in text for text in made) for form in (word, word.encode().hex())}
        assert set(found.values()) == {comes}


def test_what_a_reader_does_not_read_is_left_out() -> None:
    """Statements by their words, in every kind of step."""
    generator = Generator(3, Schema(("a", "b")), mariadb_kinds.KINDS, [r"\bJSON\b"])
    made = []
    for _ in range(150):
        made.append(generator.next())
        generator.accepted(made[-1])
    assert not any("JSON" in text for step in made for text in step.statements)
    assert any("JSON" in text for step in steps(3, mariadb_kinds.KINDS) for text in step.statements)


def test_what_ends_debezium_is_left_out() -> None:
    """See LEFT_OUT: a seed would end there, and find nothing more."""
    made = [
        text
        for seed in range(60)
        for step in steps(seed, KINDS[0])
        for text in step.statements
        if step.kind != "rows"
    ]
    assert not [text for text in made if re.search(r"DEFAULT x''(?!')|^/\*.*\*/$", text, re.S)]


def test_a_refused_step_leaves_the_schema() -> None:
    """The model follows the server, not its own wishes."""
    generator = Generator(1, Schema(("a", "b")), mariadb_kinds.KINDS)
    before = generator.schema
    generator.next()
    assert generator.schema is before


@for_each_database
def test_tables_keep_their_keys_and_names_of_their_own(kinds: Mapping[Maker, float]) -> None:
    """Each table has a key of its columns, and no two columns are one in any case."""
    for seed in SEEDS:
        for step in steps(seed, kinds):
            names = [table.name for table in step.after.tables]
            assert len(names) == len(set(names))
            for table in step.after.tables:
                columns = [column.name.lower() for column in table.columns]
                assert len(columns) == len(set(columns))
                assert {key.lower() for key in table.key} <= set(columns)


def test_a_report_has_the_statements_of_a_table_under_all_its_names() -> None:
    """A renamed table's earlier statements, and no other table's."""
    history, empty = History(), Schema(("a",))
    for kind, text, about in (
        ("create", "CREATE TABLE x", (("a", "x"),)),
        ("create", "CREATE TABLE other", (("a", "other"),)),
        ("rows", "INSERT INTO x, other", (("a", "x"), ("a", "other"))),
        ("rename_table", "RENAME TABLE x TO y", (("a", "x"), ("a", "y"))),
        ("rows", "INSERT INTO y", (("a", "y"),)),
    ):
        history.add(Step(kind, (text,), about, empty), "ERROR 1: no" if kind == "rows" else "")
    lines = history.about(("a", "y"))
    assert [line.split(": ", 1)[1].split("  --")[0] for line in lines] == [
        "CREATE TABLE x", "INSERT INTO x, other", "RENAME TABLE x TO y", "INSERT INTO y",
    ]  # fmt: skip
    assert lines[1].endswith("-- refused: ERROR 1: no")
    assert history.statements == 3


def test_the_kept_seeds_have_all_there_is() -> None:
    """Both databases and both ways to write, with each kind of statement, within their steps; but
    for the one that ends a pipeline."""
    plain = [seed for seed in kept() if seed < FIRST]
    found: dict[int, set[str]] = {0: set(), 1: set()}
    for seed in plain:
        found[seed % 2] |= {step.kind for step in steps(seed, KINDS[seed % 2], SHORT.steps)}
    assert found[0] == {maker.__name__ for maker in KINDS[0]} - {"database"}
    assert found[1] == {maker.__name__ for maker in KINDS[1]}
    assert {section(seed, "x", "debezium-json")["write"] for seed in plain} == {"merge", "equality"}
    assert len(plain) >= 10


def test_any_seed_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a hostile source as well, with a word on what it found."""
    path = tmp_path / "regression.txt"
    path.write_text("3\n1012  # SINKS=postgres: a load of a published table\n\n65535\n")
    monkeypatch.setattr(options, "REGRESSION", path)
    assert options.kept() == [3, 1012, 65535]
    assert options.seeds_of("regression") == ([3, 1012, 65535], 0)
