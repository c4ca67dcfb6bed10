"""The daemon under the display, and how to go on when it has ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from actors.runtime.files import close_folder
from daemon.cli.base.options import load_config, refuse
from daemon.cli.base.serve import serve
from daemon.cli.replicate.asked import Replication
from daemon.cli.replicate.board import FollowedTable
from daemon.cli.replicate.drive import Driver
from daemon.cli.replicate.folder import Folder, Note
from daemon.cli.replicate.screen import make_screen
from daemon.cli.replicate.text import target_of, unit_name
from daemon.config.config import Config
from daemon.operations.automatic_loads import remember, seen
from settings.exit import Exit
from settings.shell import quoted


def go_on(asked: Replication, place: Folder, note: Note, began_s: float) -> NoReturn:
    """Run it to its end, and exit. ``began_s``: when the command began. Main thread."""
    config = load_config(place.config)
    name = asked.source.name
    if name not in config.pipeline:
        refuse(f"{place.config} has no pipeline {name} any more: `binlogd run` follows the file")
    tables = [FollowedTable(table, target_of(table), rows) for table, rows in note.tables.items()]
    screen = make_screen()
    kept, state = place.own / "equal.json", config.daemon.state_dir
    try:
        driver = Driver(state, name, tables, screen, kept, began_s)
    except (OSError, ValueError, KeyError, TypeError) as error:
        screen.close()
        refuse(f"{kept} can't be read: {error}; without that file all is compared again")
    if seen(state, name) is None:
        # Their loads are requested here, together: automatic loads must not take them for new ones.
        close_folder(state)
        remember(state, name, [one.target for one in tables])
    screen.event(_page(config))
    status = serve(config, place.config, around=_around(driver))
    print(f"binlogd: {_ended(status)}. The same command goes on; or without its display:")
    print(f"  binlogd run --config {quoted(place.config)}")
    service = place.own / unit_name(asked.source)
    if service.exists():
        copied = f"sudo cp {quoted(service)} /etc/systemd/system/"
        print(f"  as a service: {copied} && sudo systemctl enable --now {quoted(service.stem)}")
    if status is Exit.KILLED:
        os._exit(status.value)
    sys.exit(status.value)


def _around(driver: Driver) -> Callable[[Callable[[], Exit]], Exit]:
    def run(daemon: Callable[[], Exit]) -> Exit:
        driver.start()
        try:
            return daemon()
        finally:
            driver.close()

    return run


def _page(config: Config) -> str:
    where = config.metrics.listen
    log = config.log.file
    return f"starts; the page is at http://{where}, the log in {log}"


def _ended(status: Exit) -> str:
    if status is Exit.OK:
        return "ended in good order, nothing is lost: the source keeps what comes meanwhile"
    return f"ended with status {status.value}; its log says why, nothing is lost"
