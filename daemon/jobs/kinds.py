"""The kinds of job. A new one is one more line here."""

from __future__ import annotations

from collections.abc import Mapping

from daemon.config.config import Config
from daemon.jobs.effects import Limits
from daemon.jobs.load.kind import LoadKind
from daemon.jobs.port import JobKind
from daemon.jobs.verify.kind import VerifyKind
from daemon.operate.rebuild_job import RebuildKind


def kinds_of(config: Config | None = None) -> dict[str, JobKind]:
    """Each kind by its name."""
    kinds: tuple[JobKind, ...] = (RebuildKind(), VerifyKind(), LoadKind(config))
    return {kind.name: kind for kind in kinds}


def limits_of(kinds: Mapping[str, JobKind]) -> dict[str, Limits]:
    """What the rule knows of each kind."""
    return {n: Limits(kind.concurrent, kind.window, kind.can_pause) for n, kind in kinds.items()}
