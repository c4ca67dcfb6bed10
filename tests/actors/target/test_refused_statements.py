"""Statements that stop a pipeline leave only their target in quarantine, where that is required.

``on_refused_target = "reload"`` is a quarantine to the processor; its load is recorded beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.contract import messages as msg
from changes.model.model import DdlPolicy
from tests.actors.target.processor_rig import S0, ProcessorRig, canal

T = "lake.db.t"
STOP = DdlPolicy(
    drop_column="stop", drop_table="stop", truncate="stop", rename_table="stop",
    not_understood="stop", lossy_change="stop",
)  # fmt: skip

ALWAYS = (
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (name)",
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE t DROP PARTITION p0",
    "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
    "ALTER IGNORE TABLE t ADD UNIQUE (name)",
    "ALTER TABLE t ADD SYSTEM VERSIONING",
    "ALTER TABLE t DROP SYSTEM VERSIONING",
    "ALTER TABLE t ENGINE=BLACKHOLE",
    "RENAME TABLE t TO x, u TO t, x TO u",
)
CHOSEN = (
    "TRUNCATE t",
    "DROP TABLE t",
    "ALTER TABLE t DROP COLUMN name",
    "RENAME TABLE t TO u",
    "FROBNICATE TABLE t",
    "ALTER TABLE t MODIFY name char(3)",
)


def statement(sql: str) -> bytes:
    body = {"database": "db", "table": "t", "type": "ALTER", "isDdl": True, "sql": sql}
    return json.dumps(body).encode()


def after(tmp_path: Path, sql: str, **settings: Any) -> ProcessorRig:
    """A target with a row meets the statement, and then another row."""
    rig = ProcessorRig(tmp_path, **settings)
    rig.send("t", (1, canal("t", 1, "a")))
    rig.settle()
    rig.send("t", (2, statement(sql)), ddl=True)
    rig.settle()
    rig.send("t", (3, canal("t", 2, "b")))
    rig.settle()
    return rig


def failures(rig: ProcessorRig) -> list[str]:
    return [said.reason for _, said in rig.told if isinstance(said, msg.PipelineFailed)]


@pytest.mark.parametrize(
    ("sql", "policy"), [(s, DdlPolicy()) for s in ALWAYS] + [(s, STOP) for s in CHOSEN]
)
def test_a_statement_that_stops_the_pipeline_may_stop_its_target_alone(
    tmp_path: Path, sql: str, policy: DdlPolicy
) -> None:
    """Nothing of it is written; what comes from the statement on is kept."""
    (said,) = failures(after(tmp_path / "stop", sql, ddl=policy))
    rig = after(tmp_path / "quarantine", sql, ddl=policy, quarantine=True)
    assert failures(rig) == []
    (kept,) = [one.fields["reason"] for one in rig.logs if one.event == "quarantined"]
    assert kept in said
    assert rig.listed[T].lanes == {S0: (2, 3)}
    assert rig.states[T].hwms == {S0: 1}
