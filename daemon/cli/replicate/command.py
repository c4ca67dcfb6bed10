"""``binlogd replicate``: from a database's address to equal tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.address import BadAddress
from daemon.cli.base.options import refuse
from daemon.cli.init.text import NotASink
from daemon.cli.replicate.asked import Replication, asked_for
from daemon.cli.replicate.begin import How, begin
from daemon.cli.replicate.folder import Folder, Note, NotOurs
from daemon.cli.replicate.going import go_on
from daemon.cli.replicate.passwords import NoPassword

IntoOption = Annotated[
    str,
    typer.Option(
        help="Where the tables shall be: a folder (Iceberg), s3://BUCKET/PATH, sqlite:FILE, "
        "postgresql://USER@HOST/DATABASE, mysql://USER@HOST/."
    ),
]
TablesOption = Annotated[
    list[str] | None,
    typer.Option(
        help="TABLE or DATABASE.TABLE (PostgreSQL: SCHEMA.TABLE), * and ? allowed, several with "
        "commas; '!log_*' leaves out. Without it all of the database."
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(help="The file with the password; else BINLOGD_PASSWORD, else a prompt."),
]
IntoFileOption = Annotated[
    Path | None,
    typer.Option(
        help="The file with the password of --into; else BINLOGD_INTO_PASSWORD, else a prompt."
    ),
]
TlsOption = Annotated[
    str | None,
    typer.Option(help="off, required or verified: how the source's connections are encrypted."),
]


SourceArgument = Annotated[
    str, typer.Argument(help="mysql://, mariadb:// or postgresql://USER@HOST[:PORT]/DATABASE")
]
FolderOption = Annotated[
    Path, typer.Option("--dir", help="Where config.toml and the folder binlogd are written.")
]
CatalogOption = Annotated[
    str, typer.Option(help="The Iceberg REST catalog of an s3:// lake: http://HOST:PORT.")
]
TlsCaOption = Annotated[
    Path | None, typer.Option(help="The file of the authorities that vouch for the source.")
]
BrokerOption = Annotated[
    str | None,
    typer.Option(help="HOST:PORT of a Kafka that is there, instead of one on this machine."),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Begin without asking.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; nothing is written.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="With --dry-run: one JSON document.")]


def replicate(
    source: SourceArgument,
    into: IntoOption = "./lake",
    tables: TablesOption = None,
    folder: FolderOption = Path(),
    password_file: FileOption = None,
    into_password_file: IntoFileOption = None,
    catalog: CatalogOption = "",
    tls: TlsOption = None,
    tls_ca: TlsCaOption = None,
    broker: BrokerOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make tables equal to a database's and keep them so: collector, log and daemon together.

    Looks at the source, says what it lacks with the statement that mends it, shows the plan, writes
    config.toml, loads all tables, compares them, and follows until Ctrl-C. The same command again
    goes on.
    """
    began_s = time.monotonic()
    try:
        asked = asked_for(source, into, tables or (), folder, catalog, tls, tls_ca, broker)
        place = Folder(folder)
        how = How(password_file, into_password_file, yes, dry_run, as_json)
        note = _noted(asked, place, how)
    except (BadAddress, NotASink, NoPassword, NotOurs) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename or folder}: {error.strerror or error}")
    if note is not None:
        go_on(asked, place, note, began_s)


def _noted(asked: Replication, place: Folder, how: How) -> Note | None:
    """What the folder replicates, from now on or already. None: nothing is to be started."""
    note = place.note()
    if note is None or not place.config.exists():
        return begin(asked, place, how)
    if (other := note.unlike(asked.note({}))) is not None:
        refuse(f"{place.path} replicates something else: {other}. --dir names another folder")
    if how.dry_run:
        print(f"{place.config} is written: this command continues from there")
        return None
    return note
