"""The kinds of job. A new one is one more line here."""

from __future__ import annotations

from collections.abc import Mapping

from daemon.config.config import Config
from daemon.operations.engine.effects import Limits
from daemon.operations.engine.port import JobKind
from daemon.operations.load.kind import LoadKind
from daemon.operations.rebuild.kind import RebuildKind
from daemon.operations.verify.kind import VerifyKind


def kinds_of(config: Config | None = None) -> dict[str, JobKind]:
    """Each kind by its name."""
    kinds: tuple[JobKind, ...] = (RebuildKind(), VerifyKind(), LoadKind(config))
    return {kind.name: kind for kind in kinds}


def limits_of(kinds: Mapping[str, JobKind]) -> dict[str, Limits]:
    """What the rule knows of each kind."""
    return {n: Limits(kind.concurrent, kind.window, kind.can_pause) for n, kind in kinds.items()}
