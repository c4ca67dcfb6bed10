"""Commands of operations: options from the parameters' model, one way to carry them out."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from changes.model.printable import json_text
from daemon.cli.base.options import (
    ConfigOption,
    ConfigUnusable,
    JsonOption,
    StateDirOption,
    make_console,
    read_config,
    refuse,
)
from daemon.operations.engine.desk import asked
from daemon.operations.engine.here import Offline, Tell
from daemon.operations.engine.operation import Done, Operation, options_of, parsed, perform
from daemon.operations.registry import kinds_of, operation_of
from daemon.state import control
from daemon.state.edits import EditRefused
from settings.exit import Exit

LOSES = "It can lose data: without --execute it only says what it would do."

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]
ExecuteOption = Annotated[
    bool, typer.Option("--execute", help="Do it; without this, say what would be done.")
]


def operation_app(words: str) -> typer.Typer:
    """An operation's command, alone in its group."""
    operation, app = operation_of(words), typer.Typer()
    example = f"Example: binlogd {operation.words} {operation.example}".rstrip()
    app.command(words.rpartition(" ")[2], epilog=example)(_command(operation))
    return app


def _command(operation: Operation[Any]) -> Callable[..., None]:
    """A function as typer wants it: what its signature names is passed by name."""

    def run(
        config: Path | None, as_json: bool, dry_run: bool, execute: bool = not operation.loses,
        state_dir: Path | None = None, **given: Any,
    ) -> None:  # fmt: skip
        if dry_run and execute and operation.loses:
            refuse("--dry-run or --execute, not both")
        act = execute and not dry_run
        sys.exit(carry_out(operation, given, act, config, state_dir, as_json).value)

    more: list[tuple[str, Any, object]] = [("config", ConfigOption, None)]
    if operation.needs_daemon and not operation.plans_offline:
        more.append(("state_dir", StateDirOption, None))
    more.append(("dry_run", DryRunOption, False))
    if operation.loses:
        more.append(("execute", ExecuteOption, False))
    more.append(("as_json", JsonOption, False))
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [_parameter(operation, name, option) for name, option in options_of(operation.params)]
    own += [inspect.Parameter(n, keyword, default=d, annotation=a) for n, a, d in more]
    run.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in own}
    run.__doc__ = inspect.cleandoc(operation.__doc__ or "")
    run.__doc__ += f"\n\n{LOSES}" if operation.loses else ""
    return run


def _parameter(operation: Operation[Any], name: str, option: Any) -> inspect.Parameter:
    found = operation.params.model_fields[name]
    flags = (option.flag,) if option.flag else ()
    if option.argument:
        said = typer.Argument(help=option.help, metavar=option.metavar)
    else:
        bounds = {"min": option.least, "max": option.most}
        said = typer.Option(*flags, help=option.help, metavar=option.metavar, **bounds)
    default = inspect.Parameter.empty if found.is_required() else found.default
    annotation = Annotated[found.annotation, said]  # type: ignore[name-defined]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


def carry_out(
    operation: Operation[Any],
    given: dict[str, Any],
    act: bool,
    config: Path | None,
    state_dir: Path | None,
    as_json: bool,
) -> Exit:
    """Have the running daemon do it, or do it here. Prints what is said; the exit status. With
    ``as_json`` a document comes of it however it ends."""
    said: dict[bool, list[str]] = {True: [], False: []}

    def tell(good: bool, line: str) -> None:
        said[good].append(line)
        if not (good and as_json):
            print(line if good else f"binlogd: {line}", file=sys.stdout if good else sys.stderr)

    given = {name: value for name, value in given.items() if value is not None}
    try:
        done = _done(operation, given, act, config, state_dir, tell)
    except (EditRefused, ConfigUnusable) as error:
        for line in error.lines:
            tell(False, line)
        done = Done(status=Exit.UNUSABLE)
    if as_json:
        document = {
            "operation": operation.words,
            "dry_run": not act,
            "status": done.status.value,
            "lines": said[True],
            "problems": said[False],
            "result": done.result,
        }
        print(json_text((done.result or []) if operation.plain_json else document, indent=1))
    elif done.result is not None:
        operation.show(make_console(), done.result)
    return done.status


def _done(
    operation: Operation[Any],
    given: dict[str, Any],
    act: bool,
    config: Path | None,
    state_dir: Path | None,
    tell: Tell,
) -> Done:
    settings = None
    try:
        parsed(operation, given)
        if not operation.own_process:
            settings = None if state_dir else read_config(config, lenient=True)
            folder = state_dir or settings.daemon.state_dir  # type: ignore[union-attr]
            return asked(folder, operation.words, given, act, tell)
    except control.NotRunning as error:
        if operation.needs_daemon and not operation.plans_offline:
            return _not_running(operation, error, tell)
    except control.ControlError as error:
        tell(False, str(error))
        return Done(status=Exit.PIPELINE_FAILED)
    settings = read_config(config)
    redact = settings.redactor.text
    here = Offline(settings, lambda good, line: tell(good, redact(line)), kinds_of())
    try:
        return perform(operation, parsed(operation, given), here, act)
    except control.NotRunning as error:
        return _not_running(operation, error, tell)


def _not_running(operation: Operation[Any], error: control.NotRunning, tell: Tell) -> Done:
    tell(False, f"{error}: {operation.needs_daemon}")
    return Done(status=error.status)
