"""The port of operations: what people have done to pipelines, targets and jobs.

An operation is one file and one line in ``registry.py``. Its parameters are one model: the
command's options and the request on the control socket follow from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console

from changes.model.printable import reason_of
from daemon.config.pipeline_parts import LoadSection
from daemon.operations.engine.here import Here
from daemon.operations.engine.port import JobKind, Plan
from daemon.operations.engine.runner import JobsClosed
from daemon.operations.engine.thread import AWAY
from daemon.state.control import ControlError, NotRunning
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseRefused
from settings.exit import Exit
from sources.base.port import LogGone, NotAnswered, TopicMissing


class Params(BaseModel):
    """The parameters of an operation. Each is annotated with an ``Option``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Option:
    """How people give a parameter. ``flag``: where it is not named as the parameter, or has no
    ``--no-`` spelling. ``argument``: it stands without a name."""

    help: str
    flag: str = ""
    argument: bool = False
    metavar: str | None = None
    least: float | None = None
    most: float | None = None


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of it. ``result`` is JSON; people have it as the lines that were said."""

    result: Any = None
    status: Exit = Exit.OK


class Operation(ABC, Generic[P]):
    """One operation; its docstring is the help of its command. One instance serves all threads.

    ``plan`` changes nothing. ``step`` may be repeated: it begins by looking at what is there. What
    takes long is recorded as a job of ``kind``, in steps of its own, and undone by `jobs cancel`.
    """

    words: ClassVar[str]
    """Of the command, such as ``tables retry``."""
    example: ClassVar[str] = ""
    """What follows these words in an example."""
    loses: ClassVar[bool] = False
    """Whether it can lose something: then it does nothing without ``--execute``."""
    needs_daemon: ClassVar[str] = ""
    """Why it can't be done while no daemon runs, for people; empty: it can."""
    plans_offline: ClassVar[bool] = False
    """Whether at least the dry run can be made without the daemon that it needs."""
    own_process: ClassVar[bool] = False
    """Whether a command does it itself also while the daemon runs."""
    undone_by: ClassVar[str] = ""
    """The command that takes it back."""
    plain_json: ClassVar[bool] = False
    """Whether ``--json`` prints the result alone."""
    params: type[P]

    @abstractmethod
    def plan(self, params: P, here: Here) -> Plan:
        """The dry run. Raises EditRefused, and what counts as failed."""

    @abstractmethod
    def step(self, params: P, here: Here) -> Done:
        """Do it. Raises as ``plan``, and EditFailed."""

    def show(self, console: Console, result: Any) -> None:
        """Print a result that lines can't tell. In the command's process."""

    def kind(self, load: LoadSection | None) -> JobKind | None:
        """The kind of job that carries it out, if one does. ``load`` bounds loads; without it the
        kind only plans."""
        return None


FAILED = (*AWAY, ControlError, DatabaseRefused, JobsClosed, LogGone, NotAnswered, TopicMissing)
"""What makes exit status 1: it may work later, or part of it was done, as the line says."""


def perform(operation: Operation[P], params: P, here: Here, act: bool) -> Done:
    """Do it, or (not ``act``) say what would be done: exceptions become statuses, in this one
    place. Raises NotRunning where it needs a daemon."""
    try:
        return operation.step(params, here) if act else dry_run(operation, params, here)
    except EditRefused as error:
        here.note(*error.lines)
        return Done(status=Exit.UNUSABLE)
    except NotRunning:
        raise
    except FAILED as error:
        here.note(reason_of(error))
        return Done(status=Exit.PIPELINE_FAILED)


def dry_run(operation: Operation[P], params: P, here: Here) -> Done:
    """Say what would be done."""
    plan = operation.plan(params, here)
    say_plan(plan, here)
    if plan.refusals:
        return Done(plan.document, Exit.UNUSABLE)
    if operation.loses and not plan.nothing:
        here.say("nothing was changed: --execute does it")
    return Done(plan.document, plan.status)


def say_plan(plan: Plan, here: Here) -> None:
    """Say a plan's lines."""
    here.say(*plan.lines)
    here.note(*plan.notes, *plan.refusals)


def parsed(operation: Operation[P], given: Mapping[str, Any]) -> P:
    """The parameters. Raises EditRefused, a line for each that is wrong."""
    try:
        return operation.params(**given)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise EditRefused(*(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems))


def options_of(model: type[Params]) -> Iterator[tuple[str, Option]]:
    """Each parameter with how people give it, in the command's order."""
    for name, found in model.model_fields.items():
        yield name, next(each for each in found.metadata if isinstance(each, Option))
