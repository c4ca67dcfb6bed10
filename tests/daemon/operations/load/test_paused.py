"""Jobs of tables of which a person has paused one: the dry run says what the request would meet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.operations.engine.here import InDaemon, Offline
from daemon.operations.engine.operation import perform
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import JobRequest
from daemon.operations.load.kind import LoadKind
from daemon.operations.load.of_tables import OfTables, TablesParams
from daemon.operations.load.operation import LoadOperation, LoadParams
from daemon.operations.verify.job.kind import VerifyKind
from daemon.operations.verify.job.operation import VerifyOperation, VerifyParams
from daemon.state.pauses import Pause
from settings.exit import Exit
from tests.daemon.operations.job_rig import JobRig

NAME = "lake.s.t u"
REFUSED = f"{NAME}: a person has paused it: `binlogd resume 'lake.s.t u'`"


def planned(_: Any, look: Look, wanted: JobRequest) -> Plan:
    """A plan without a database, of a table that can be loaded and compared."""
    params = {**wanted.params, "tables": ["s.t u"]}
    jobs = (JobRequest(wanted.kind, "shop", (NAME,), params),)
    return Plan(jobs, ("a plan",), {"patterns": list(wanted.targets)})


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobRig:
    """A daemon's jobs, and a pause of one target."""
    for kind in (LoadKind, VerifyKind):
        monkeypatch.setattr(kind, "plan", planned)
    made = JobRig(tmp_path, LoadKind(), VerifyKind())
    made.daemon.pauses.put(NAME, Pause(1))
    return made


@pytest.mark.parametrize(
    ("operation", "params", "status"),
    [
        (LoadOperation(), LoadParams(targets=["*"]), Exit.UNUSABLE),
        (VerifyOperation(), VerifyParams(targets=["*"], repair=True), Exit.UNUSABLE),
        (VerifyOperation(), VerifyParams(targets=["*"]), Exit.OK),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_the_dry_run_refuses_it_too(
    operation: OfTables[Any], params: TablesParams, status: Exit, running: bool, rig: JobRig
) -> None:
    """A comparison that writes nothing may be made."""
    said: list[tuple[bool, str]] = []

    def tell(good: bool, line: str) -> None:
        said.append((good, line))

    kinds: Mapping[str, Any] = {"load": LoadKind(), "verify": VerifyKind()}
    lent = rig.lent()
    lent.pauses = rig.daemon.pauses
    here = InDaemon(lent, tell, lambda s: False) if running else Offline(rig.config, tell, kinds)
    assert perform(operation, params, here, act=False).status is status
    refused = [(False, REFUSED)] if status is Exit.UNUSABLE else []
    assert said == [(True, "a plan"), *refused]
