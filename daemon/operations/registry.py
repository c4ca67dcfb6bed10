"""The operations. A new one is one more line here.

An operation is imported when somebody asks for it: a command needs one, the daemon all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.operation import Operation
from daemon.operations.engine.port import JobKind

PLACES = {
    "reload": "reload.reload:ReloadOperation",
    "pause": "targets.pause:PauseOperation",
    "resume": "targets.pause:ResumeOperation",
    "drain": "targets.pause:DrainOperation",
    "log-level": "log_level:LogLevelOperation",
    "offsets import": "offsets_import:ImportOperation",
    "offsets move": "move.operation:MoveOperation",
    "offsets reset": "reset.operation:ResetOperation",
    "tables retry": "targets.retry:RetryOperation",
    "tables rebuild": "rebuild.operation:RebuildOperation",
    "tables load": "load.operation:LoadOperation",
    "tables verify": "verify.job.operation:VerifyOperation",
    "tables discard": "targets.discard:DiscardOperation",
    "jobs pause": "job_requests:PauseJob",
    "jobs resume": "job_requests:ResumeJob",
    "jobs cancel": "job_requests:CancelJob",
    "dead-letters replay": "replay.operation:ReplayOperation",
    "dead-letters discard": "replay.discard:DiscardLettersOperation",
    "dead-letters prune": "dead_letters_prune:PruneOperation",
    "collector pause": "collectors:PauseCollector",
    "collector resume": "collectors:ResumeCollector",
    "collector restart": "collectors:RestartCollector",
    "collector reset": "collectors:ResetCollector",
    "collector remove": "collectors:RemoveCollector",
}
"""By the words of its command, in the order of the help: module and class, below this folder."""


def operation_of(words: str) -> Operation[Any]:
    """The operation of a command. Raises KeyError."""
    module, _, name = PLACES[words].partition(":")
    made: Operation[Any] = getattr(import_module(f"daemon.operations.{module}"), name)()
    return made


def operations() -> dict[str, Operation[Any]]:
    """Each by the words of its command, in the order of the help."""
    return {words: operation_of(words) for words in PLACES}


def kinds_of(load: LoadSection | None = None) -> dict[str, JobKind]:
    """The kinds of jobs that carry out operations, by name. Without ``[load]`` they only plan."""
    kinds = [operation.kind(load) for operation in operations().values()]
    return {kind.name: kind for kind in kinds if kind is not None}
