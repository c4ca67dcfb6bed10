"""The operations. A new one is one more line here."""

from __future__ import annotations

from typing import Any

from daemon.config.pipeline_parts import LoadSection
from daemon.operations.collectors import (
    PauseCollector,
    RemoveCollector,
    ResetCollector,
    RestartCollector,
    ResumeCollector,
)
from daemon.operations.dead_letters_prune import PruneOperation
from daemon.operations.engine.operation import Operation
from daemon.operations.engine.port import JobKind
from daemon.operations.job_requests import CancelJob, PauseJob, ResumeJob
from daemon.operations.load.operation import LoadOperation
from daemon.operations.log_level import LogLevelOperation
from daemon.operations.move.operation import MoveOperation
from daemon.operations.offsets_import import ImportOperation
from daemon.operations.rebuild.operation import RebuildOperation
from daemon.operations.reload.reload import ReloadOperation
from daemon.operations.replay.discard import DiscardLettersOperation
from daemon.operations.replay.operation import ReplayOperation
from daemon.operations.reset.operation import ResetOperation
from daemon.operations.targets.discard import DiscardOperation
from daemon.operations.targets.pause import DrainOperation, PauseOperation, ResumeOperation
from daemon.operations.targets.retry import RetryOperation
from daemon.operations.verify.operation import VerifyOperation


def operations() -> dict[str, Operation[Any]]:
    """Each by the words of its command, in the order of the help."""
    found: tuple[Operation[Any], ...] = (
        ReloadOperation(),
        PauseOperation(),
        ResumeOperation(),
        DrainOperation(),
        LogLevelOperation(),
        ImportOperation(),
        MoveOperation(),
        ResetOperation(),
        RetryOperation(),
        RebuildOperation(),
        LoadOperation(),
        VerifyOperation(),
        DiscardOperation(),
        PauseJob(),
        ResumeJob(),
        CancelJob(),
        ReplayOperation(),
        DiscardLettersOperation(),
        PruneOperation(),
        PauseCollector(),
        ResumeCollector(),
        RestartCollector(),
        ResetCollector(),
        RemoveCollector(),
    )
    return {operation.words: operation for operation in found}


def kinds_of(load: LoadSection | None = None) -> dict[str, JobKind]:
    """The kinds of jobs that carry out operations, by name. Without ``[load]`` they only plan."""
    kinds = [operation.kind(load) for operation in operations().values()]
    return {kind.name: kind for kind in kinds if kind is not None}
