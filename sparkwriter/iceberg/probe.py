"""Tries what a configured catalog is for, before the daemon starts: its storage, and the targets.

The storage is that of a table which is begun and never committed. So its place and its credentials
are what the catalog gives to a real one, and nothing of it shows.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from sparkwriter.iceberg.catalog import LakeCatalog
from sparkwriter.iceberg.look import MODE, NOT_OURS
from sparkwriter.iceberg.refusals import explain
from sparkwriter.session.java_api import Java, JavaFailure, java_classes

_CONTENT = b"binlogd check-config"
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "probe", "required": False, "type": "int"}],
}
_NAMESPACE = "binlogd_probe"
"""Most catalogs begin a table in a namespace that is not there: it is made with the table."""
_SOMEBODYS = "default"
"""A namespace that every Hive metastore has."""
_NO_SUCH_DATABASE = "org.apache.hadoop.hive.metastore.api.NoSuchObjectException"
"""A metastore's own word for a namespace that is not there."""

MOST_TARGETS = 200
"""Targets that are looked for: each is a request or two. More would take minutes."""


class _Begun(NamedTuple):
    """A table that is begun: where it would be, and what reads and writes there."""

    location: str
    io: Java
    own_place: bool
    """Whether the catalog's warehouse alone says where it is, not its namespace."""


def probe_catalog(
    spark: SparkSession,
    sink: str,
    properties: Mapping[str, str],
    targets: Iterable[TargetName],
) -> Iterator[str]:
    """What is wrong with the storage of an open catalog, and with targets. One line each.

    ``targets``: those known before any change arrives. Leaves nothing behind.
    """
    catalog, targets = LakeCatalog(spark), list(targets)[:MOST_TARGETS]
    step = "use"
    try:
        begun = _begin(catalog, sink, properties, targets)
        if begun is not None:
            yield from _elsewhere(sink, properties, begun)
            for step in _try(begun, properties):  # noqa: B007 (the step that fails is reported)
                pass
    except JavaFailure as error:
        yield f"sink {sink}: can't {step} the warehouse: {explain(error, sink, properties)}"
        return
    for target in targets:
        try:
            table = catalog.load(target)
        except TargetRefused as error:
            yield f"sink.{sink}: target {target}: {error}"
        except JavaFailure as error:
            yield f"sink {sink}: can't look for {target}: {explain(error, sink, properties)}"
            return
        else:
            if table is not None and table.property(MODE) is None:
                yield f"sink.{sink}: target {target}: {NOT_OURS}"


def _begin(
    catalog: LakeCatalog, sink: str, properties: Mapping[str, str], targets: Iterable[TargetName]
) -> _Begun | None:
    """Begin a table; None where the catalog does not let us in any namespace that we know.

    Raises one of JavaFailure for what is no refusal of the catalog: its FileIO can't be made.
    """
    spaces = dict.fromkeys([_NAMESPACE, *(target.namespace for target in targets), _SOMEBODYS])
    for space in spaces:
        name = TargetName(sink, space, f"probe_{uuid.uuid4().hex}")
        try:
            table = catalog.begin(name, json.dumps(_SCHEMA))
        except JavaFailure as error:
            if not java_classes(error)[-1:] or not _is_refusal(java_classes(error)[-1]):
                raise
        else:
            return _Begun(_place(table, properties), table.io(), space == _NAMESPACE)
    return None


def _is_refusal(java: str) -> bool:
    return java.startswith("org.apache.iceberg.exceptions.") or java == _NO_SUCH_DATABASE


def _place(table: Java, properties: Mapping[str, str]) -> str:
    """A REST catalog alone decides where tables are; others put namespaces into the warehouse."""
    warehouse = properties.get("warehouse", "")
    told = properties.get("type") != "rest" and "://" in warehouse
    return warehouse if told else str(table.location())


def _elsewhere(sink: str, properties: Mapping[str, str], begun: _Begun) -> Iterator[str]:
    """A line where a REST catalog has another warehouse than the configuration says."""
    wanted = properties.get("warehouse", "")
    if properties.get("type") != "rest" or "://" not in wanted or not begun.own_place:
        return
    if not _plain(begun.location).startswith(_plain(wanted).rstrip("/") + "/"):
        told = begun.location.partition(f"/{_NAMESPACE}")[0]
        yield (
            f"sink.{sink}.catalog.warehouse: is {wanted}, but the catalog puts tables below {told}:"
            " say the same, or leave it out"
        )


def _plain(uri: str) -> str:
    return re.sub(r"^s3[an]:", "s3:", uri)


def _try(begun: _Begun, properties: Mapping[str, str]) -> Iterator[str]:
    """Write, read back and delete one object; gives the name of each step before it is done.

    A folder of this machine has been tried by ``check_warehouse``. Raises one of JavaFailure.
    """
    if re.match(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*:", begun.location) is None:
        return
    path = f"{begun.location.rstrip('/')}/.binlogd-probe-{uuid.uuid4().hex}"
    yield "write to"
    output = begun.io.newOutputFile(path).createOrOverwrite()
    output.write(bytearray(_CONTENT))
    output.close()
    yield "read from"
    stream = begun.io.newInputFile(path).newStream()
    found = bytes(stream.readAllBytes())
    stream.close()
    if found != _CONTENT:
        raise Py4JError(f"{path} holds {len(found)} bytes, {len(_CONTENT)} were written")
    yield "delete from"
    begun.io.deleteFile(path)


# Whether a warehouse that is a folder of this machine can be written.


def check_warehouse(sink: str, properties: Mapping[str, str]) -> None:
    """Raise SinkUnavailable, naming sink and path, where a local warehouse can't be written.

    Makes the folder when it is missing. A warehouse with a scheme other than ``file`` is left to
    the catalog to check.
    """
    warehouse = properties.get("warehouse", "")
    if not warehouse or re.match(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*:", warehouse):
        return
    path = Path(re.sub(r"^file:(//)?", "", warehouse))
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".binlogd-probe-"):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SinkUnavailable(f"sink {sink}: can't write warehouse {path}: {reason}") from error
