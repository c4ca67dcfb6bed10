"""``binlogd setup``: brings the jars beside Python's packages, and says which Java is used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from actors.runtime.jars import (
    JarsError,
    extra_list,
    extras_folder,
    fetch,
    fetch_extra,
    jars_folder,
)
from actors.runtime.java import JavaMissing, find_java, make_packaged_home
from daemon.cli.base.options import refuse


def setup(
    extras: Annotated[
        list[str] | None,
        typer.Argument(help="Jars that only some need: s3, postgresql, mariadb, collector."),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="The same, by an option: --with collector."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A folder with the jars: nothing is fetched."),
    ] = None,
) -> None:
    """Bring the jars that binlogd needs, each checked by its hash; what is there is kept.

    Those of all are 105 MB, with a Kafka broker; collector (Kafka Connect, Debezium) is 81 MB more.
    The folder of --from may be a copy of another machine's, as this command prints it.
    """
    try:
        names = [*(extras or []), *(extra or [])]
        for name in names:
            extra_list(name)
        _find_java()
        jars_folder().parent.mkdir(parents=True, exist_ok=True)
        _say(fetch(jars_folder(), source=source), jars_folder())
        for name in names:
            _say(fetch_extra(name, source), extras_folder() / name)
    except (JarsError, JavaMissing) as problem:
        refuse(str(problem))
    except OSError as error:
        refuse(f"{error.filename or jars_folder()}: {error.strerror or error}")


def _find_java() -> None:
    try:
        found = find_java()
    except JavaMissing:
        if not make_packaged_home():
            raise
        found = find_java()
    print(f"Java {found.version}: {found.home}")


def _say(fetched: bool, folder: Path) -> None:
    megabytes = sum(jar.stat().st_size for jar in folder.glob("*/*.jar")) / 1e6
    print(f"jars {'brought to' if fetched else 'were there'}: {folder} ({megabytes:.0f} MB)")
