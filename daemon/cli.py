"""The command line: ``binlogd run``, ``status``, ``check-config``, ``decode``, and groups."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated, NoReturn, cast, get_args

import typer
from rich.console import Console
from rich.table import Table

from changes.formats.auto import AUTO, NAMES, make_format
from changes.model import FormatOptions, ZeroDates
from daemon.commands.decode import run_decode
from daemon.commands.decode_types import given_types
from daemon.commands.progress import Bar, Quiet
from daemon.config.file import ConfigError, load
from daemon.config.pipelines import Config
from daemon.config.secrets import Redactor
from daemon.observe import control
from daemon.observe.logs import set_up_logs
from daemon.observe.status_table import print_status
from daemon.positions.offset_file import OffsetFile
from daemon.runtime.lifecycle import Exit
from offsets.moves import MarkMoves
from offsets.snapshot import Snapshot, encode
from offsets.store import Loaded, StoreError

app = typer.Typer(
    help="Keeps tables in a lake equal to a database, from its change stream in Kafka.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
offsets_app = typer.Typer(help="What is recorded of positions.", no_args_is_help=True)
app.add_typer(offsets_app, name="offsets")
tables_app = typer.Typer(help="The targets, and those in quarantine.", no_args_is_help=True)
app.add_typer(tables_app, name="tables")

letters_app = typer.Typer(help="Records that could not be applied.", no_args_is_help=True)
app.add_typer(letters_app, name="dead-letters")

ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", help="The configuration file.", show_default=True)
]

PipelineOption = Annotated[str | None, typer.Option(help="Of this pipeline alone.")]
TopicOption = Annotated[str | None, typer.Option(help="Records of this topic.")]
TableOption = Annotated[
    str | None, typer.Option(help="A pattern (*, ?) of the source's table, or of the target.")
]
ReasonOption = Annotated[
    str | None, typer.Option(help="unreadable, no-key, unfit, or a part of the error's text.")
]
SinceOption = Annotated[
    str | None, typer.Option(help="Stored since: 2026-01-31T00:00:00Z, or an age such as 2h.")
]


@app.command()
def run(
    config: ConfigOption = Path("config.toml"),
    until_caught_up: Annotated[
        bool, typer.Option(help="End at the log's end as it is now, instead of going on.")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Draw a progress bar on standard error.")] = False,
) -> None:
    """Run the daemon. SIGTERM and Ctrl-C write what is in hand, commit, and end with status 0."""
    settings = _load(config)
    try:
        set_up_logs(settings.log, settings.redactor)
    except OSError as error:
        _refuse(f"log.file {settings.log.file} can't be written: {error}")
    # Late: pyspark costs most of a second, which `offsets show` need not wait for.
    from daemon.observe.notify import Notifier
    from daemon.runtime.spark_tier import SparkTier
    from daemon.service import Service, Unusable

    _redact_tracebacks(settings.redactor)
    notifier = Notifier.from_environment()

    show = Bar() if progress else Quiet()
    try:
        status = Service(settings, until_caught_up, show, SparkTier(), notifier).run()
    except Unusable as error:
        show.close()
        _refuse(settings.redactor.text(str(error)))
    if status is Exit.KILLED:
        # No thread is waited for, and no library's clean-up: the next start replays harmlessly.
        os._exit(status.value)
    sys.exit(status.value)


@app.command()
def status(
    config: ConfigOption = Path("config.toml"),
    state_dir: Annotated[
        Path | None,
        typer.Option(help="The daemon's state directory, instead of what the configuration says."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show how the running daemon does. Exit status 3 when none runs, 1 when it does not answer."""
    folder = state_dir or _load(config, lenient=True).daemon.state_dir
    try:
        found = control.ask(folder, {"ask": "status"})
    except control.NotRunning as error:
        hint = "" if state_dir else "; --state-dir names another"
        print(f"binlogd: {error}{hint}", file=sys.stderr)
        sys.exit(Exit.NOT_RUNNING.value)
    except control.ControlError as error:
        print(f"binlogd: {error}", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        print_status(_console(), found)


@app.command("check-config")
def check_config(
    config: ConfigOption = Path("config.toml"),
    connect: Annotated[
        bool, typer.Option(help="Also try the broker, the topics and the catalogs.")
    ] = False,
) -> None:
    """Check a configuration: exit status 0 and what would be done, or 2 and a line per problem."""
    settings = _load(config)
    # Late, as in `run`.
    from daemon.config import check
    from daemon.runtime.spark_tier import SparkTier

    def start_tier() -> None:
        tier = SparkTier()
        try:
            tier.start(settings)
        finally:
            tier.stop()

    redact = settings.redactor.text
    for warning in check.warnings(settings, config):
        print(f"binlogd: warning: {redact(f'{config}: {warning}')}", file=sys.stderr)
    found = [f"{config}: {problem}" for problem in check.problems(settings)]
    if connect and not found:
        found += check.connect_problems(settings, start_tier)
    for problem in found:
        print(f"binlogd: {redact(problem)}", file=sys.stderr)
    if found:
        sys.exit(Exit.UNUSABLE.value)
    for line in check.plan(settings):
        print(redact(line))


@app.command()
def decode(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files of messages, - for stdin.")
    ],
    format_: Annotated[str, typer.Option("--format", help=f"One of: {', '.join(NAMES)}.")] = AUTO,
    time_zone: Annotated[
        str, typer.Option(help="The zone in which TIMESTAMP values are printed.")
    ] = "UTC",
    zero_dates: Annotated[
        str, typer.Option(help="What 0000-00-00 becomes: null or error.")
    ] = "null",
    database: Annotated[
        str | None, typer.Option(help="The database of messages that name none.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of messages that name none.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="COLUMN=TYPE", help="A type that no message tells."),
    ] = None,
    encryption_key: Annotated[
        str | None,
        typer.Option(envvar="BINLOGD_ENCRYPTION_KEY", help="What Maxwell encrypted with."),
    ] = None,
) -> None:
    """Print what messages say, a line of JSON for each change; status 1 where some are bad."""
    names = {
        "default_database": database,
        "default_table": table,
        "encryption_key": encryption_key,
    }
    extra = {option: name for option, name in names.items() if name is not None}
    if format_ not in NAMES:
        _refuse(f"unknown format {format_!r}; known: {', '.join(NAMES)}")
    if zero_dates not in get_args(ZeroDates):
        _refuse(f"--zero-dates {zero_dates!r} is none of {', '.join(get_args(ZeroDates))}")
    try:
        given = given_types(format_, types or ())
        options = FormatOptions(time_zone, cast(ZeroDates, zero_dates), extra, given)
        chosen = make_format(format_, options)
    except ValueError as error:
        _refuse(str(error))
    sys.exit(run_decode(files, chosen))


@offsets_app.command("show")
def offsets_show(config: ConfigOption = Path("config.toml")) -> None:
    """Show what is recorded: frontiers, what the broker confirmed, the targets' marks.

    From the local file, without secrets and broker; of a pipeline without one from its stores.
    """
    settings = _load(config, lenient=True)
    console = _console()
    damaged = False
    for name, section in settings.pipeline.items():
        if "file" not in section.offset_stores:
            damaged |= _show_stored(console, _load(config), name)
            continue
        file = OffsetFile(settings.daemon.state_dir, name)
        try:
            loaded = file.load()
        except OSError as error:
            _refuse(f"{file.path} can't be read: {error}")
        for damage in loaded.damage:
            damaged = True
            print(f"binlogd: {damage}", file=sys.stderr)
        if loaded.snapshot is None:
            console.print(f"pipeline {name}: nothing recorded ({file.path})", highlight=False)
        else:
            _print_snapshot(console, loaded.snapshot)
    sys.exit(Exit.PIPELINE_FAILED.value if damaged else 0)


def _recorded(settings: Config, name: str) -> Loaded:
    """What a pipeline's stores hold together; damage is told, a store that is away ends it."""
    from daemon.commands.offset_transfer import export_snapshot

    try:
        loaded = export_snapshot(settings, name)
    except StoreError as error:
        _refuse(settings.redactor.text(f"pipeline.{name}: {error}"))
    for damage in loaded.damage:
        print(f"binlogd: {damage}", file=sys.stderr)
    return loaded


def _show_stored(console: Console, settings: Config, name: str) -> bool:
    """Show what a pipeline's other stores hold; gives whether some of it is damaged."""
    loaded = _recorded(settings, name)
    if loaded.snapshot is None:
        console.print(f"pipeline {name}: nothing recorded", highlight=False)
    else:
        _print_snapshot(console, loaded.snapshot)
    return bool(loaded.damage)


@offsets_app.command("export")
def offsets_export(
    config: ConfigOption = Path("config.toml"),
    pipeline: Annotated[
        str | None, typer.Option(help="Which pipeline; not needed where there is one.")
    ] = None,
) -> None:
    """Print what is recorded of one pipeline as JSON. Status 1 where nothing or damage is."""
    settings = _load(config)
    name = _pipeline(settings, pipeline)
    loaded = _recorded(settings, name)
    if loaded.snapshot is None:
        print(f"binlogd: pipeline {name}: nothing recorded", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)
    print(encode(loaded.snapshot), end="")
    sys.exit(Exit.PIPELINE_FAILED.value if loaded.damage else 0)


@offsets_app.command("import")
def offsets_import(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An exported file, - for stdin.")],
    config: ConfigOption = Path("config.toml"),
) -> None:
    """Record an exported, perhaps edited file, with the daemon stopped. Status 2: refused."""
    settings = _load(config)
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _refuse(f"{file} can't be read: {error}")
    from daemon.commands.offset_transfer import TransferRefused, import_snapshot

    try:
        for line in import_snapshot(settings, text):
            to = sys.stderr if line.startswith("warning: ") else sys.stdout
            prefix = "binlogd: " if to is sys.stderr else ""
            print(settings.redactor.text(f"{prefix}{line}"), file=to)
    except TransferRefused as error:
        _refuse(settings.redactor.text(f"{file}: {error}"))
    except StoreError as error:
        print(f"binlogd: {settings.redactor.text(str(error))}", file=sys.stderr)
        sys.exit(Exit.PIPELINE_FAILED.value)


@offsets_app.command("reset")
def offsets_reset(
    to: Annotated[
        str, typer.Option(help="earliest, latest, timestamp, offset, or frontier (the group's).")
    ],
    at: Annotated[
        str | None, typer.Option(help="The offset, or the timestamp with its zone (ISO 8601).")
    ] = None,
    config: ConfigOption = Path("config.toml"),
    pipeline: Annotated[
        str | None, typer.Option(help="Which pipeline; not needed where there is one.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="One of its topics alone.")] = None,
    partition: Annotated[int | None, typer.Option(help="One partition alone.")] = None,
    table: Annotated[
        str | None, typer.Option(help="One target alone, as tables list names it.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Do it though changes are lost by it.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this, say what would be done.")
    ] = False,
) -> None:
    """Read again from an earlier position, or skip to a later one: group and targets together.

    On the running daemon, or on what is recorded of a stopped one. Status 2: refused.
    """
    settings = _load(config)
    name = _pipeline(settings, pipeline)
    from daemon.commands.offsets_reset import run_reset
    from daemon.operate.offset_reset import ResetWish
    from daemon.runtime.edits import EditRefused

    try:
        wish = ResetWish(to, at, topic, partition, table, force)
    except EditRefused as error:
        _refuse(str(error))
    sys.exit(run_reset(settings, name, wish, execute))


@tables_app.command("list")
def tables_list(
    config: ConfigOption = Path("config.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show the targets: of the running daemon, or as they are recorded. Status 1: damage."""
    from daemon.commands.tables import list_tables

    settings = _load(config, lenient=True)
    if any("file" not in section.offset_stores for section in settings.pipeline.values()):
        settings = _load(config)  # another store is asked, which may want a secret
    sys.exit(list_tables(settings, _console(), as_json))


@tables_app.command("retry")
def tables_retry(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
) -> None:
    """Release a target from quarantine: what was spilled is written first. Status 2: refused."""
    from daemon.commands.tables import retry

    sys.exit(retry(_load(config, lenient=True), target))


@tables_app.command("rebuild")
def tables_rebuild(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
    force: Annotated[
        bool, typer.Option(help="Even if the log has lost its beginning; the old table stays.")
    ] = False,
    keep_old: Annotated[
        bool, typer.Option(help="Keep the old table as TARGET__before_NUMBER.")
    ] = False,
    cancel: Annotated[bool, typer.Option(help="Give up a rebuild that is under way.")] = False,
) -> None:
    """Read a table again from its log's start into a new one, which takes its name."""
    from daemon.commands.tables import rebuild

    flags = {"force": force, "keep_old": keep_old, "cancel": cancel}
    sys.exit(rebuild(_load(config), target, flags))


@tables_app.command("discard")
def tables_discard(
    target: Annotated[str, typer.Argument(help="As tables list names it.")],
    config: ConfigOption = Path("config.toml"),
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this, say what would be lost.")
    ] = False,
) -> None:
    """Give up what is kept for a target that no route wants any more, or a reset that can't be."""
    from daemon.commands.tables_discard import discard

    sys.exit(discard(_load(config), target, execute))


@letters_app.command("list")
def letters_list(
    config: ConfigOption = Path("config.toml"),
    pipeline: PipelineOption = None,
    topic: TopicOption = None,
    table: TableOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    state: Annotated[str | None, typer.Option(help="open or replayed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what is stored, a line for each letter. Status 1 where some can't be read."""
    from daemon.commands.dead_letters import list_letters, wanted_of

    settings, names = _letters_of(config, pipeline)
    try:
        wanted = wanted_of((), topic, table, reason, since, state)
    except ValueError as error:
        _refuse(str(error))
    sys.exit(list_letters(settings, names, wanted, _console(), as_json))


@letters_app.command("show")
def letters_show(
    letter: Annotated[str, typer.Argument(help="TOPIC:PARTITION:OFFSET, as list names it.")],
    config: ConfigOption = Path("config.toml"),
    pipeline: PipelineOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show one in full: key, value, headers, error, and what its format says of it now."""
    from daemon.commands.dead_letters import show_letter, wanted_of

    settings = _load(config)
    names = list(settings.pipeline) if pipeline is None else [_pipeline(settings, pipeline)]
    try:
        wanted = wanted_of((letter,))
    except ValueError as error:
        _refuse(str(error))
    sys.exit(show_letter(settings, names, wanted, as_json))


@letters_app.command("replay")
def letters_replay(
    letters: Annotated[
        list[str] | None,
        typer.Argument(metavar="LETTER...", help="TOPIC:PARTITION:OFFSET, as list names them."),
    ] = None,
    config: ConfigOption = Path("config.toml"),
    pipeline: Annotated[
        str | None, typer.Option(help="Which pipeline; not needed where there is one.")
    ] = None,
    topic: TopicOption = None,
    table: TableOption = None,
    reason: ReasonOption = None,
    since: SinceOption = None,
    every: Annotated[bool, typer.Option("--all", help="All that are open.")] = False,
    force: Annotated[bool, typer.Option(help="Even over newer changes, or a second time.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this, say what would be done.")
    ] = False,
) -> None:
    """Append the records of letters to their partitions again, to be applied as they are now.

    Where nothing came since that touches their rows. Status 1: some are left, 2: all are.
    """
    from daemon.commands.dead_letters import wanted_of
    from daemon.letters.replay import run_replay

    settings = _load(config)
    name = _pipeline(settings, pipeline)
    try:
        wanted = wanted_of(letters or (), topic, table, reason, since)
    except ValueError as error:
        _refuse(str(error))
    if wanted.everything and not every:
        _refuse("which? Name letters as `dead-letters list` does, filter them, or say --all")
    sys.exit(run_replay(settings, name, wanted, execute, force))


def _letters_of(config: Path, pipeline: str | None) -> tuple[Config, list[str]]:
    """The pipelines that are meant. Secrets are needed only where a topic is to be read."""
    settings = _load(config, lenient=True)
    names = list(settings.pipeline) if pipeline is None else [_pipeline(settings, pipeline)]
    if any(settings.pipeline[name].dead_letter_topic is not None for name in names):
        settings = _load(config)
    return settings, names


def _print_snapshot(console: Console, snapshot: Snapshot) -> None:
    console.print(f"pipeline {snapshot.pipeline}, group {snapshot.group}", highlight=False)
    for topic, name in sorted(snapshot.formats.items()):
        console.print(f"topic {topic} is {name}", highlight=False, markup=False)
    titles = ("partition", "frontier", "confirmed by the broker", "leader epoch")
    partitions = Table(*titles, box=None)
    for source, state in sorted(snapshot.partitions.items()):
        confirmed = "-" if state.confirmed is None else str(state.confirmed)
        confirmed += " (reset)" if state.reset else ""
        epoch = "-" if state.log is None else str(state.log.epoch)
        partitions.add_row(str(source), str(state.frontier), confirmed, epoch)
    console.print(partitions)
    targets = Table("target", "version", "high-water marks", box=None)
    for target, mark in sorted(snapshot.targets.items()):
        marks = ", ".join(f"{source}={hwm}" for source, hwm in sorted(mark.hwms.items()))
        if mark.moves is not None:
            marks += f" ({_moves(mark.moves)} at the next start)"
        targets.add_row(target, mark.version or "-", marks)
    console.print(targets)
    _print_rebuilds(console, snapshot)


def _moves(moves: MarkMoves) -> str:
    ways = ("lowered to", moves.lower), ("lifted to", moves.lift)
    return ", ".join(
        f"{source} {way} {to}" for way, at in ways for source, to in sorted(at.items())
    )


def _print_rebuilds(console: Console, snapshot: Snapshot) -> None:
    for target, rebuild in sorted(snapshot.rebuilds.items()):
        until = ", ".join(f"{source}={last}" for source, last in sorted(rebuild.until.items()))
        what = "is given up" if rebuild.cancelled else f"is filled until {until}"
        console.print(f"{target} is being rebuilt: {rebuild.into} {what}", highlight=False)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def _redact_tracebacks(redactor: Redactor) -> None:
    """What nobody foresaw ends in a traceback on standard error: without secrets, too."""

    def show(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, at))
        print(redactor.text(text), file=sys.stderr, end="")

    sys.excepthook = show


def _load(path: Path, lenient: bool = False) -> Config:
    try:
        return load(path, lenient=lenient)
    except ConfigError as error:
        for problem in error.problems:
            print(f"binlogd: {problem}", file=sys.stderr)
        sys.exit(Exit.UNUSABLE.value)


def _pipeline(settings: Config, name: str | None) -> str:
    """The pipeline that is meant: the only one need not be named."""
    known = ", ".join(sorted(settings.pipeline))
    if name is None and len(settings.pipeline) > 1:
        _refuse(f"--pipeline is wanted, one of: {known}")
    chosen = name or next(iter(settings.pipeline))
    if chosen not in settings.pipeline:
        _refuse(f"--pipeline {chosen}: unknown; the configuration has: {known}")
    return chosen


def _refuse(reason: str) -> NoReturn:
    print(f"binlogd: {reason}", file=sys.stderr)
    sys.exit(Exit.UNUSABLE.value)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
