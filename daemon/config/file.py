"""Reads a configuration file: interpolates and checks it.

Every error names its key and what is allowed. Relative paths are relative to the file's folder, so
the daemon's working directory does not matter.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import ValidationError

from changes.formats import make_format
from collector.broker.home import BrokerUnusable
from daemon.config.brokers import embedded_settings
from daemon.config.config import Config
from daemon.config.interpolation import Lookup, interpolate
from daemon.config.lines import line_of
from settings.secrets import (
    MASK,
    Redactor,
    looks_secret,
    masked,
    secrets_in,
)
from settings.section import Section
from sparkwriter.sections import KINDS


class ConfigError(Exception):
    """The configuration can't be used: one line for each error."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(
    path: Path, environment: Mapping[str, str] = os.environ, *, lenient: bool = False
) -> Config:
    """Read and check a file. Raises ConfigError with a line for each problem.

    ``lenient`` leaves out what can't be looked up (not in ``[daemon]``): enough to ask a running
    daemon, without the right to read its secrets.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{path}: can't be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: is not UTF-8 text: {error}"]) from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{path}: not TOML: {error}"]) from error
    lookup = Lookup(environment, path.resolve().parent, lenient, {}, [])
    document = interpolate(document, lookup, "")
    if lookup.problems:
        raise ConfigError([f"{path}: {problem}" for problem in lookup.problems])
    redactor = Redactor(secret for found in lookup.secrets.values() for secret in found)
    redactor.learn(secrets_in(document))
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        lines = [masked(redactor.text(f"{path}: {line}")) for line in _explain(error, text)]
        raise ConfigError(lines) from None
    config.remember(lookup.secrets, path.resolve(), _read_again)
    if unfit := [f"{path}: {line}" for line in (*_without_spark(config), *_exposed(config))]:
        raise ConfigError(unfit)
    if not lenient and (unmade := [f"{path}: {line}" for line in _unmade_formats(config)]):
        raise ConfigError(unmade)
    placed = _absolute(config, path.resolve().parent)
    try:
        return _reaching(placed, lenient)
    except BrokerUnusable as error:
        raise ConfigError([f"{path}: {error}"]) from error


def _read_again(path: Path) -> Config | None:
    try:
        return load(path)
    except ConfigError:
        return None


def _exposed(config: Config) -> Iterator[str]:
    """JVM options are on a command line, which everybody on the machine can read."""
    secrets = config.secrets
    for key, value in config.spark.conf.items():
        if key.endswith("JavaOptions") and any(secret in value for secret in secrets if secret):
            yield (
                f"spark.conf.{key}: holds a secret, which every user of the machine could read in "
                "the list of processes; put it into a file that the JVM reads"
            )


def _without_spark(config: Config) -> Iterator[str]:
    """Sinks that this installation can't write. One line each."""
    if find_spec("pyspark") is None:
        for name, sink in config.sink.items():
            if sink.needs_spark:
                yield (
                    f"sink.{name}.kind: {sink.kind} is written with Spark, which binlogd-sql does "
                    "not bring: run `pip uninstall --yes binlogd-sql` and `pip install binlogd`"
                )


def _unmade_formats(config: Config) -> Iterator[str]:
    """Formats that can't be made here even with the defaults, as where Arrow finds no time zones.
    Who is lenient decodes nothing, and is spared Arrow."""
    for name, pipeline in config.pipeline.items():
        try:
            make_format(pipeline.format, pipeline.format_options())
        except ValueError as error:
            yield f"pipeline.{name}: {error}"


def _absolute(config: Config, folder: Path) -> Config:
    daemon = config.daemon.model_copy(
        update={
            "state_dir": folder / config.daemon.state_dir,
            "staging_dir": _placed(config.daemon.staging_dir, folder),
        }
    )
    log = config.log
    if log.file:
        log = log.model_copy(update={"file": str(folder / log.file)})
    events = config.events
    if events.file:
        events = events.model_copy(update={"file": str(folder / events.file)})
    sinks = {name: sink.absolute(folder) for name, sink in config.sink.items()}
    databases = {name: section.absolute(folder) for name, section in config.database.items()}
    registries = {name: section.absolute(folder) for name, section in config.registry.items()}
    collectors = {name: section.absolute(folder) for name, section in config.collector.items()}
    changed = {
        "daemon": daemon, "log": log, "events": events, "sink": sinks, "database": databases,
        "registry": registries, "collector": collectors,
        "connect": config.connect.absolute(folder),
    }  # fmt: skip
    return config.model_copy(update=changed)


def _reaching(config: Config, lenient: bool) -> Config:
    """With the embedded broker's address and secret, where there is one."""
    if config.broker.embedded:
        config.adopt_broker(embedded_settings(config.broker, config.daemon.state_dir, lenient))
    return config


def _placed(staging: str, folder: Path) -> str:
    return staging if "://" in staging else str(folder / staging)


def _explain(error: ValidationError, text: str) -> Iterator[str]:
    """Pydantic's errors in a file's text, as lines that name the key and what is allowed there."""
    for found in error.errors():
        model, path = _place(found["loc"])
        at = ".".join(path)
        if found["type"] == "extra_forbidden":
            yield f"{at}: unknown key{_unknown_key(model, path, text)}"
        elif found["type"] == "union_tag_not_found":
            yield f"{at}.kind: missing; allowed: {', '.join(sorted(KINDS))}"
        elif found["type"] == "union_tag_invalid":
            yield f"{at}.kind: {found['ctx']['tag']!r} is none of {', '.join(sorted(KINDS))}"
        elif found["type"] == "missing":
            yield f"{at}: missing"
        elif found["type"] in ("too_short", "string_too_short"):
            yield f"{at}: is empty"
        elif found["type"] == "value_error":
            for line in str(found["ctx"]["error"]).splitlines():
                yield f"{at}: {line}" if at else line
        else:
            # "keys" are names of columns, whatever they look like.
            hidden = looks_secret(at) and "keys" not in found["loc"]
            yield f"{at}: {found['msg']}, not {MASK if hidden else _shown(found['input'])}"


def _unknown_key(model: type[Section], path: Sequence[str], text: str) -> str:
    """Of an unknown key of a section: its line, the key that was probably meant, all keys."""
    known = sorted(field.alias or name for name, field in model.model_fields.items())
    line = line_of(text, path)
    close = get_close_matches(path[-1], known, 1)
    return (
        (f" (line {line})" if line else "")
        + (f"; did you mean {close[0]}?" if close else ";")
        + f" allowed: {', '.join(known)}"
    )


def _shown(value: Any) -> str:
    """A value that does not fit. A table or list may hold secrets."""
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else repr(value)


def _place(location: tuple[int | str, ...]) -> tuple[type[Section], list[str]]:
    """The section of an error's last part, and its path as the file spells it."""
    model: type[Section] = Config
    declared: object = None  # of the last part's value
    path: list[str] = []
    for number, part in enumerate(location, 1):
        if (kind := _of_kind(declared, part)) is not None:
            model, declared = kind, None
            continue  # pydantic puts the kind behind the name
        path.append(str(part))
        if get_origin(declared) in (dict, list):  # the part is a name, or a place in a list
            declared = get_args(declared)[-1]
        else:
            named = (f for name, f in model.model_fields.items() if part in (name, f.alias))
            field = next(named, None)
            declared = None if field is None else _without_none(field.annotation)
        if isinstance(declared, type) and issubclass(declared, Section) and number < len(location):
            model, declared = declared, None
    return model, path


def _without_none(declared: object) -> object:
    """The section of one that may be left out: ``OAuthSection | None``."""
    parts = [part for part in get_args(declared) if part is not type(None)]
    optional = len(parts) == 1 and type(None) in get_args(declared)
    return parts[0] if optional else declared


def _of_kind(declared: object, part: int | str) -> type[Section] | None:
    """Of sections that their key ``kind`` tells apart: the one of that kind."""
    if get_origin(declared) is not Annotated:
        return None
    for section in get_args(get_args(declared)[0]):
        if part in get_args(section.model_fields["kind"].annotation):
            return cast("type[Section]", section)
    return None
