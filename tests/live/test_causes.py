"""A reason that was given for a table, and the step that must have led to it."""

from __future__ import annotations

import pytest

from tests.live.causes import Past, is_explained

WIDER = Past(frozenset({"alter"}), ("ALTER TABLE `t` MODIFY COLUMN `c1` INT NULL",))
PARTITIONS = "ALTER TABLE `t` PARTITION BY KEY (`id`) PARTITIONS 3"
IGNORE = "ALTER IGNORE TABLE `t` ADD UNIQUE u1 (`x.y`)"
EXPLAINED = (
    ("rows_may_differ: m1_a.t: column c1 from smallint to int at t:0 offset 158", WIDER),
    (f"ddl_not_understood: {PARTITIONS}", Past(frozenset({"partitions"}), (PARTITIONS,))),
    ("quarantined: pg.a.t: column id2, part of the key, is \"char\": it was never tried: make it "
     "text", Past(own=True)),
    ("quarantined: pg.t: rows come without column c1, which the target has", Past(image="NOBLOB")),
    ("rows_may_differ: lake.a.t: c1: inserts come without it, and its default at the source is not "
     "in the stream", Past(image="MINIMAL")),
    ("quarantined: lake.a.t: rows of a:1, and partitions have no order between them",
     Past(apart=True)),
    ("quarantined: s1:0 offset 3: a.t: ALTER IGNORE TABLE, which may delete rows, is not "
     f"followed: {IGNORE}", Past(frozenset({"ignore_unique"}), ("USE `a`", IGNORE))),
    ("rows_may_differ: m1.t: CONVERT TO CHARACTER SET latin1 at s1:0 offset 3",
     Past(frozenset({"another_charset"}), ("ALTER TABLE `t` CONVERT TO CHARACTER SET latin1",))),
    ("quarantined: pg.a.t: waits until what pg.a.u was before is written",
     Past(frozenset({"rename_table"}))),
    ("quarantined: s1:0 offset 8: a._t_gho: RENAME TABLE while pg.a.t is being rebuilt is not "
     "followed: RENAME TABLE `a`.`_t_gho` TO `a`.`t`",
     Past(frozenset({"online"}), ("RENAME TABLE `t` TO `_t_del`, `_t_gho` TO `t`",))),
    ("rows_may_differ: a.t took the place of a.u at a:0 offset 3", Past(frozenset({"swap"}))),
    ("quarantined: pg.a.t: column c is stored as long, which can't become decimal(38, 2)", WIDER),
)  # fmt: skip


@pytest.mark.parametrize(("told", "past"), EXPLAINED)
def test_a_reason_has_the_step_that_leads_to_it(told: str, past: Past) -> None:
    """And without that step it has no cause."""
    assert is_explained(told, past)
    assert not is_explained(told, Past(frozenset({"create", "rows"}), ("CREATE TABLE `t` (…)",)))


def test_a_reason_about_a_column_is_that_column_s() -> None:
    """Another one's statement is no cause."""
    assert not is_explained("rows_may_differ: m1_a.t: column c2 from int to text at t:0 offset 1",
                            WIDER)  # fmt: skip


def test_a_reason_that_no_rule_knows_has_no_cause() -> None:
    """Nor has a right that lacks, whatever the table went through."""
    every = Past(frozenset({"swap", "drop"}), (PARTITIONS,), True, "MINIMAL", True, True)
    assert not is_explained("quarantined: the moon is full", every)
    assert not is_explained("quarantined: the user lacks the right TRIGGER, without which the "
                            "server hides its triggers", every)  # fmt: skip
