"""The configuration that ``binlogd replicate`` writes. Pure."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.cli.base.address import DatabaseAddress
from daemon.cli.init.text import TablesPlace, comment, quote, sink_lines
from settings.shell import quoted

FOLDER = "binlogd"
"""Beside the configuration: everything that binlogd keeps, the broker's log and positions too."""

SINK = "lake"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is written down. ``password`` is a reference, as ``${file:…}``; empty: there is none.

    ``patterns`` of source tables, ``left_out`` of those that are not followed. ``listen``: where
    the page is. ``publication`` is PostgreSQL's.
    """

    source: DatabaseAddress
    password: str
    place: TablesPlace
    patterns: Sequence[str]
    left_out: Sequence[str]
    listen: str
    publication: str | None = None
    tls: str | None = None
    tls_ca: str | None = None
    broker: str | None = None
    """Of a Kafka that is there; None: the embedded one."""


def target_of(table: str) -> str:
    """A source table's target."""
    return f"{SINK}.{table}"


def pattern_of(table: str) -> str:
    """The pattern that matches this table alone."""
    return glob.escape(table)


def configuration(wanted: Wanted) -> str:
    """The whole file."""
    name = wanted.source.name
    return "\n".join([*_head(wanted), *_source(wanted, name), *_flow(wanted, name)]) + "\n"


def _head(wanted: Wanted) -> Iterator[str]:
    yield comment(
        f"Written by `binlogd replicate {quoted(wanted.source)}`: the same command goes on."
    )
    yield "# `binlogd run` does the same without its display. docs/configuration.md has every key."
    yield ""
    yield "[daemon]"
    yield f"state_dir = {quote(f'{FOLDER}/state')}"
    yield f"staging_dir = {quote(f'{FOLDER}/staging')}"
    yield ""
    yield "[log]"
    yield f"file = {quote(f'{FOLDER}/binlogd.log')}"
    yield ""
    yield "[metrics]                          # the page, /metrics, /healthz, /readyz; empty: none"
    yield f"listen = {quote(wanted.listen)}"
    yield ""
    if wanted.broker is not None:
        yield "[kafka]                            # any librdkafka setting"
        yield f"bootstrap.servers = {quote(wanted.broker)}"
    else:
        yield "# One broker on one disk, for this machine alone. With your own Kafka this goes,"
        yield '# and [kafka] bootstrap.servers = "HOST:PORT" comes.'
        yield "[broker]"
        yield "embedded = true"
    yield ""


def _source(wanted: Wanted, name: str) -> Iterator[str]:
    yield f"[database.{name}]"
    yield f"url = {quote(wanted.source.url)}"
    yield f"user = {quote(wanted.source.user)}"
    if wanted.password:
        yield f"password = {quote(wanted.password)}"
    for key in ("publication", "tls", "tls_ca"):
        if (value := getattr(wanted, key)) is not None:
            yield f"{key} = {quote(value)}"
    yield ""
    yield f"[collector.{name}]                 # reads its log into one topic, exactly once"
    yield f"database = {quote(name)}"
    yield "heartbeat_s = 2                    # a quiet source shows this soon that all is there"
    yield ""


def _flow(wanted: Wanted, name: str) -> Iterator[str]:
    yield from sink_lines(wanted.place)
    yield ""
    yield "[load]"
    yield "concurrent = 2                     # small tables need not wait for large ones"
    yield "idle_s = 20                        # a quiet source has no later change that ends a load"
    yield ""
    yield f"[pipeline.{name}]"
    yield f"collector = {quote(name)}"
    yield f"include = [{', '.join(map(quote, wanted.patterns))}]"
    yield f"exclude = [{', '.join(map(quote, wanted.left_out))}]"
    yield f"target = {quote(target_of('{database}.{table}'))}"
    yield 'load = "on-first-sight"            # tables that appear get their rows, too'
    yield 'on_refused_target = "reload"       # what can\'t be followed is loaded again'
    yield 'ddl.lossy_change = "reload"'
    yield 'verify.every = "1d"'
    yield "verify.idle_s = 20"


def unit(name: str, user: str, folder: str, program: str) -> str:
    """A systemd unit that goes on where it is, as the user who began. ``program``: binlogd itself.

    ``systemd/binlogd.service`` is the one for a configuration in /etc, with a user of its own.
    """
    return f"""\
# Written by `binlogd replicate`: {name} goes on as a service, as {user}.
[Unit]
Description=binlogd, replicates {name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
User={user}
WorkingDirectory={folder}
ExecStart={program} run --config {folder}/config.toml
ExecReload=/bin/kill -HUP $MAINPID
TimeoutStartSec=300
WatchdogSec=60
KillMode=mixed
TimeoutStopSec=120
Restart=on-failure
RestartSec=15
RestartPreventExitStatus=1
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""


def unit_name(source: DatabaseAddress) -> str:
    """The file of that unit."""
    return f"binlogd-{source.name}.service"
