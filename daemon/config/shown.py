"""Shows a configuration without what may be secret: by an allow list, field by field.

A number, a switch or a word out of a list is shown. A text is shown only where ``SHOWN`` says so,
and the rest, tables of free keys among them, by its form alone: other programs' settings hold
secrets under names that nobody here has heard of.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

SHOWN: Mapping[str, frozenset[str]] = {
    "SqliteSection": frozenset({"path"}),
    "JdbcSection": frozenset({"ledger_schema", "tls_ca"}),
    "PythonSection": frozenset({"entry", "path", "state"}),
    "PipelineSection": frozenset(
        {"dead_letters", "topics", "exclude_topics", "format", "group", "include", "exclude",
         "time_zone", "default_database", "default_table", "target", "write", "keys", "types",
         "offset_topic", "database", "databases", "registry", "collector",
         "counts"}
    ),
    "ExpectedCountsSection": frozenset({"topic"}),
    "StartSection": frozenset({"timestamp", "force"}),
    "CutSection": frozenset({"table"}),
    "RouteSection": frozenset(
        {"tables", "exclude", "target", "write", "keys", "types", "columns", "drop_columns",
         "rename", "reader_renames", "metadata", "shard", "mask", "partition_by", "sort_by"}
    ),
    "DatabaseSection": frozenset({"primary", "publication", "tls_ca"}),
    "RegistrySection": frozenset({"tls_ca", "tls_cert", "tls_key"}),
    "CollectorSection": frozenset(
        {"database", "topic", "groups", "tables", "slot", "connect_ca", "references"}
    ),
    "ConnectSection": frozenset({"group", "plugins"}),
    "DaemonSection": frozenset({"state_dir", "staging_dir"}),
    "LogSection": frozenset({"file"}),
    "EventsSection": frozenset({"file"}),
    "MetricsSection": frozenset({"listen", "hosts", "docs"}),
    "JobsSection": frozenset({"notifications_topic", "signals_topic"}),
    "GateSection": frozenset({"tables", "from_", "success", "topic"}),
    "LoadSection": frozenset({"window"}),
    "SparkSection": frozenset({"master"}),
}  # fmt: skip
"""The texts that are shown, by section: names of tables, topics and places."""

HIDDEN: Mapping[str, frozenset[str]] = {
    "Config": frozenset({"kafka"}),
    "IcebergSection": frozenset({"catalog"}),
    "JdbcSection": frozenset({"url", "user", "password"}),
    "PythonSection": frozenset({"settings_"}),
    "PipelineSection": frozenset({"unavailable_value", "encryption_key", "kafka", "options"}),
    "ExpectedCountsSection": frozenset({"kafka", "query"}),
    "RouteSection": frozenset({"filter", "computed", "mask_salt", "table_properties"}),
    "DatabaseSection": frozenset({"url", "user", "password"}),
    "RegistrySection": frozenset({"url", "basic_auth", "bearer_token", "tls_key_password"}),
    "CollectorSection": frozenset(
        {"url", "user", "password", "heartbeat_statement", "connect", "connect_auth", "config"}
    ),
    "ConnectSection": frozenset({"kafka"}),
    "OAuthSection": frozenset(
        {"token_url", "client_id", "client_secret", "scope", "logical_cluster", "identity_pool"}
    ),
    "EventsSection": frozenset({"webhook"}),
    "GateSection": frozenset({"kafka", "webhook", "webhook_secret"}),
    "MetricsSection": frozenset({"token"}),
    "TracingSection": frozenset({"endpoint", "headers"}),
    "SparkSection": frozenset({"conf"}),
}
"""Those that are not. A test wants each text of the configuration in one of the two."""


def shown(value: Any) -> Any:
    """A section as JSON may show it."""
    if isinstance(value, BaseModel):
        kind = type(value)
        return {
            field.alias or name: _field(kind, name, getattr(value, name))
            for name, field in kind.model_fields.items()
        }
    if isinstance(value, Mapping):
        return {str(key): shown(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shown(inner) for inner in value]
    return form_of(value)


def form_of(value: Any) -> Any:
    """What kind of value it is, without the value. Of a table its keys."""
    if isinstance(value, Mapping):
        return {str(key): form_of(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [form_of(inner) for inner in value]
    if value is None:
        return None
    names = {bool: "(true or false)", int: "(a number)", float: "(a number)", str: "(a text)"}
    return names.get(type(value), "(a value)") if value != "" else "(empty)"


def holds_text(annotation: Any) -> bool:
    """Whether a field of that type may hold a text that is no word out of a list."""
    if get_origin(annotation) is Literal:
        return False
    if isinstance(annotation, type):
        plain = issubclass(annotation, bool | int | float | Enum | BaseModel | type(None))
        return not plain and get_origin(annotation) is None
    if get_origin(annotation) is dict and _is_sections(annotation):
        return False
    return any(holds_text(part) for part in get_args(annotation) if part is not Ellipsis)


def _is_sections(annotation: Any) -> bool:
    """Whether it is a table of sections, whose keys are our own names."""
    return not holds_text(get_args(annotation)[1])


def _field(section: type[BaseModel], name: str, value: Any) -> Any:
    if isinstance(value, BaseModel):
        return shown(value)
    if not holds_text(section.model_fields[name].annotation):
        return _sections(value)
    allowed = any(name in SHOWN.get(kind.__name__, ()) for kind in section.__mro__)
    return _plain(value) if allowed else form_of(value)


def _sections(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return shown(value)
    if isinstance(value, Mapping):
        return {key: _sections(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_sections(inner) for inner in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, bool | int | float) else str(value)
