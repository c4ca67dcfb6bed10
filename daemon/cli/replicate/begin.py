"""The first time: look at the source, show the plan, ask, write the configuration."""

from __future__ import annotations

import getpass
import json
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import typer

from changes.model.printable import printable_within_lines
from collector.checks.look import Looked, look_at
from collector.checks.seen import SeenSource
from collector.connector.config import slot_name
from collector.connector.section import CollectorSection
from daemon.cli.base.options import quit_with, refuse
from daemon.cli.init.text import TablesPlace
from daemon.cli.replicate import plan
from daemon.cli.replicate.asked import Replication
from daemon.cli.replicate.folder import Folder, Note
from daemon.cli.replicate.passwords import Password, from_environment
from daemon.cli.replicate.text import Wanted, configuration, pattern_of, unit, unit_name
from daemon.config.file import ConfigError, load
from databases.base.errors import DatabaseError
from settings.exit import Exit


class How(NamedTuple):
    """The options beside the request: files of passwords, and how far it goes."""

    password_file: Path | None
    into_password_file: Path | None
    yes: bool
    dry_run: bool
    as_json: bool


def begin(asked: Replication, place: Folder, how: How) -> Note:
    """What was written. Exits where anything is in the way, or nothing was to be written. Raises
    NoPassword, NotASink, OSError."""
    if not (how.yes or how.dry_run or sys.stdin.isatty()):
        refuse("no terminal to confirm on: --yes begins without asking, --dry-run only shows")
    own = from_environment(
        str(asked.source), how.password_file, "--password-file", "BINLOGD_PASSWORD"
    )
    theirs = Password("")
    if asked.target is not None:
        option, variable = "--into-password-file", "BINLOGD_INTO_PASSWORD"
        theirs = from_environment(str(asked.target), how.into_password_file, option, variable)
    seen = _seen(asked, own)
    _show(asked, seen, as_json=how.as_json)
    followed = [one for one in seen.tables if one.is_followed]
    if not seen.is_ready:
        quit_with("run these statements there, then this command again", Exit.UNUSABLE)
    if not followed:
        refuse("no table can be followed")
    wanted = _wanted(asked, seen)
    _try(wanted, own, theirs)
    if how.dry_run:
        sys.exit(Exit.OK.value)
    if not how.yes and not typer.confirm("Begin?", err=True):
        refuse("nothing was written")
    rows = {str(one.name): one.table.rows for one in followed if one.table is not None}
    return _write(asked.note(rows), wanted, place, own, theirs)


def _seen(asked: Replication, password: Password) -> SeenSource:
    section = asked.section(asked.publication)
    slot = slot_name(asked.source.name, CollectorSection(database=asked.source.name))
    login = partial(section.login, password.text)
    looked = Looked("the source", section, login, asked.patterns, asked.without, slot)
    try:
        return look_at(looked, lambda: time.time_ns() // 1000)
    except DatabaseError as error:
        text = str(error)
        if password.text:
            text = text.replace(password.text, "***")
        refuse(f"{text}{_pg_hba(text)}")


def _pg_hba(text: str) -> str:
    """Who may connect is in a file of PostgreSQL's server."""
    if "pg_hba.conf" not in text:
        return ""
    return (
        ": add a line such as `host DATABASE USER ADDRESS/32 scram-sha-256` to its pg_hba.conf, "
        "then SELECT pg_reload_conf()"
    )


def _show(asked: Replication, seen: SeenSource, *, as_json: bool) -> None:
    kind = asked.source.parts.kind
    if as_json:
        print(json.dumps(plan.document(seen, kind), ensure_ascii=False, indent=1))
        return
    for line in plan.lines(seen, kind, str(asked.source), asked.into):
        print(printable_within_lines(line))


def _wanted(asked: Replication, seen: SeenSource) -> Wanted:
    """The references of passwords are not known yet."""
    left = [pattern_of(str(one.name)) for one in seen.tables if not one.is_followed]
    lake, user = asked.into.removeprefix("sqlite:"), ""
    if asked.target is not None:
        lake, user = asked.target.url, asked.target.user
    kind = "sqlite" if asked.into.startswith("sqlite:") else ""
    return Wanted(
        source=asked.source,
        password="",
        place=TablesPlace(lake, asked.catalog, user, "", kind),
        patterns=asked.patterns,
        left_out=[*asked.without, *left],
        listen="127.0.0.1:9464",
        publication=asked.publication,
        tls=asked.tls,
        tls_ca=asked.tls_ca,
        broker=asked.broker,
    )


def _try(wanted: Wanted, own: Password, theirs: Password) -> None:
    """Refuse what this machine lacks, by a draft of the configuration that nobody keeps."""
    # Late: pyspark costs most of a second.
    from daemon.operations.checks import check

    with tempfile.TemporaryDirectory(prefix="binlogd-replicate-") as name:
        draft = Folder(Path(name))
        draft.begin(Note("", "", (), {}))
        try:
            draft.configure(configuration(_referring(wanted, draft, own, theirs)))
            found = list(check.problems(load(draft.config)))
        except ConfigError as error:
            found = error.problems
        for line in found:
            print(f"binlogd: {line.replace(f'{draft.config}: ', '')}", file=sys.stderr)
        if found:
            sys.exit(Exit.UNUSABLE.value)


def _referring(wanted: Wanted, place: Folder, own: Password, theirs: Password) -> Wanted:
    """With the passwords by reference: a file of their own, or one that is kept for them."""

    def reference(password: Password, name: str) -> str:
        if password.file is not None:
            return f"${{file:{password.file.absolute()}}}"
        return place.keep_secret(name, password.text) if password.text else ""

    sink = replace(wanted.place, password=reference(theirs, "into"))
    return replace(wanted, password=reference(own, "source"), place=sink)


def _write(note: Note, wanted: Wanted, place: Folder, own: Password, theirs: Password) -> Note:
    place.begin(note)
    whole = _referring(replace(wanted, listen=_free_address()), place, own, theirs)
    place.configure(configuration(whole))
    program = shutil.which(sys.argv[0]) or f"{sys.executable} {sys.argv[0]}"
    text = unit(wanted.source.name, getpass.getuser(), str(place.path), program)
    (place.own / unit_name(wanted.source)).write_text(text, encoding="utf-8")
    print(f"binlogd: {place.config} is written, and {place.own} beside it")
    return note


def _free_address() -> str:
    """The usual address of the page, or another one where that is taken."""
    for port in (9464, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return f"127.0.0.1:{probe.getsockname()[1]}"
    raise OSError("no free port on 127.0.0.1")
