"""The collectors of a configuration: what each is given, and the worker for those embedded."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from actors.runtime.files import state_id
from actors.runtime.jars import JarsError
from actors.runtime.program_keeper import ProgramTimes
from actors.runtime.truststore import truststore, write_truststore
from collector.collector import Collector
from collector.collectors import Collectors
from collector.connect.clients import java_settings
from collector.connect.files import WorkerFiles
from collector.connect.rest import ConnectLogin, ConnectRest
from collector.connect.worker import ConnectWorker, WorkerJars, worker_clients
from collector.connector.section import CollectorSection
from collector.jars import collector_folder, worker_classpath
from collector.memory import left_behind
from collector.wiring import Wiring
from daemon.config.collectors import readers, tables_of
from daemon.config.config import Config
from databases.base.url import Login
from databases.opening import open_database
from settings.rotation import current_password
from sources.opening import open_topics

PLUGINS = ("mariadb", "mysql", "postgres")

Load = Callable[[Sequence[str]], Mapping[str, str]]


def make_collectors(config: Config, load: Load, settings: ProgramTimes | None = None) -> Collectors:
    """Those of the configuration; nothing runs yet. ``load`` has tables loaded by patterns, and
    gives those whose loads could not be recorded, each with why."""
    files = WorkerFiles(config.daemon.state_dir)
    embedded = any(section.is_embedded for section in config.collector.values())
    worker = _worker(config, files) if embedded else None
    found = [Collector(_wiring(config, name, files, worker, load)) for name in config.collector]
    left = partial(left_behind, config.daemon.state_dir, list(config.collector))
    return Collectors(found, worker, settings, left)


def _worker(config: Config, files: WorkerFiles) -> ConnectWorker:
    return ConnectWorker(
        files,
        config.connect,
        lambda: worker_clients(_clients(config)),
        connect_jars,
        # Opened each time: the address of an embedded broker is known once it is up.
        lambda: open_topics(config).of_collectors().workers(config.connect.group),
        lambda: f"binlogd-{state_id(config.daemon.state_dir)}",
    )


def _clients(config: Config) -> Mapping[str, str]:
    """Java's settings for the broker."""
    return {**java_settings(config.kafka), **config.connect.kafka}


def connect_jars() -> WorkerJars:
    """What `binlogd setup --with collector` brought. Raises JarsError where nothing is there; a
    single connector is missed by its name."""
    plugins: dict[str, Path] = {}
    for name in PLUGINS:
        try:
            plugins[name] = collector_folder(name)
        except JarsError:
            continue
    return WorkerJars(worker_classpath(), plugins)


def _wiring(
    config: Config, name: str, files: WorkerFiles, worker: ConnectWorker | None, load: Load
) -> Wiring:
    section = config.collector[name]
    database = None if section.database is None else config.database[section.database]
    adopted = None if section.is_embedded else _adopted(section)
    return Wiring(
        name=name,
        state_dir=config.daemon.state_dir,
        section=section,
        database=database,
        login=partial(_login, config, section),
        open_database=lambda: open_database(config, section.database or ""),
        clients=partial(_clients, config),
        rest=lambda: adopted or (None if worker is None else worker.rest),
        topics=lambda: open_topics(config).of_collectors(),
        files=files,
        patterns=lambda: tables_of(name, section, config.pipeline),
        pipelines=lambda: readers(name, section, config.pipeline),
        load=load,
        truststore=partial(_truststore, files, name),
    )


def _adopted(section: CollectorSection) -> ConnectRest:
    return ConnectRest(
        ConnectLogin(section.connect or "", section.connect_auth, section.connect_ca)
    )


def _login(config: Config, section: CollectorSection) -> Login:
    """With the password as its file or credential has it now."""
    if section.database is not None:
        found = config.database[section.database]
        return found.login(current_password(config, section.database))
    host, port, database = section.others_address
    return Login("mysql", host, port, database, section.user, section.password)


def _truststore(files: WorkerFiles, name: str, login: Login) -> str | None:
    """The authorities that vouch for the database, in Java's form; None where none is needed."""
    if login.kind != "mysql" or login.tls not in ("ca", "verified"):
        return None
    path = files.folder / f"{name}.jks"
    if login.tls_ca is None:
        return str(path) if write_truststore(path) else None
    context = ssl.create_default_context(cafile=login.tls_ca)
    path.write_bytes(truststore(context.get_ca_certs(binary_form=True)))
    return str(path)
