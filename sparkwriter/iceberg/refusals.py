"""Turns what Java, Arrow and the disk raise into the port's errors: refused, or away for a while.

What no retry can mend is a closed list, and by its cause: a name, a value or a file that is as it
is. Everything else may pass, so it is tried again. Taken for permanent, an outage would put healthy
targets into quarantine; taken for passing, a permanent fault is tried for ever.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForName
from changes.model.model import TargetName
from offsets.fence import Fenced
from sparkwriter.iceberg.diagnosis import diagnose
from sparkwriter.session.java_api import JavaFailure, java_causes, java_class, java_classes, reason

_DATA_ERRORS = (
    "ArithmeticException",
    "NumberFormatException",
    "DateTimeException",
    "MERGE_CARDINALITY_VIOLATION",
    "CAST_OVERFLOW",
    "CAST_INVALID_INPUT",
    "INCOMPATIBLE_DATA_FOR_TABLE",
    "PARSE_SYNTAX_ERROR",
)
"""A value that does not fit its column, wherever a statement meets it."""

_BAD_ARGUMENT = frozenset(
    {
        "java.lang.IllegalArgumentException",
        "java.nio.file.InvalidPathException",
        "org.apache.iceberg.exceptions.BadRequestException",
        "org.apache.iceberg.exceptions.ValidationException",
    }
)
"""What Iceberg and its catalogs raise for a name or a schema that they never take. Only there:
two writers that meet raise a ValidationException, too, and a host that no name server knows at the
time is the cause of an IllegalArgumentException."""

_BAD_FILE = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowNotImplementedError,
    pa.ArrowCapacityError,
)
"""What Arrow says of bytes and types, which it will say again. Not of memory that is short."""

_BY_METASTORE = "types incompatible with the existing columns in their respective positions"
"""Hive's words where a column that is not the last one is dropped or moved: its own default."""

_LONGEST_NAME = 255
"""Bytes of one part of a path, where the file system itself does not report its own limit."""


@contextmanager
def reasons(target: TargetName) -> Iterator[None]:
    """Turn what is raised inside into the port's errors, with the target's name and a line."""
    try:
        yield
    except WaitsForName as error:
        raise WaitsForName(_named(target, error), error.other) from error
    except (Fenced, SinkUnavailable, TargetRefused) as error:
        raise type(error)(_named(target, error)) from error
    except JavaFailure as error:
        text = f"{target}: {reason(error)}"
        kind = f"{java_class(error)} {error}"
        if any(name in kind for name in _DATA_ERRORS):
            raise TargetRefused(text) from error
        raise SinkUnavailable(f"{target}: {explain(error, target.sink)}") from error
    except (OSError, pa.ArrowException) as error:
        text = f"{target}: the staged file: {reason(error)}"
        if isinstance(error, _BAD_FILE) or _is_name_too_long(error):
            raise TargetRefused(text) from error
        raise SinkUnavailable(text) from error


def explain(error: BaseException, sink: str, properties: Mapping[str, str] | None = None) -> str:
    """Why a call failed, in one line, after the key to change where one is behind it."""
    found = diagnose(java_causes(error), properties)
    if found is None:
        return reason(error)
    return f"sink.{sink}.catalog.{found.key}: {found.what} ({reason(error)})"


def _named(target: TargetName, error: Exception) -> str:
    text = str(error)
    return text if text.startswith(str(target)) else f"{target}: {text}"


def _is_name_too_long(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG


@contextmanager
def only_names() -> Iterator[None]:
    """Around calls that can be wrong in themselves by names, columns and properties alone.

    Raises TargetRefused where the JVM says that they are; whatever has another cause stays as it
    is.
    """
    try:
        yield
    except JavaFailure as error:
        classes = java_classes(error)
        if classes and _BAD_ARGUMENT.issuperset(classes):
            raise TargetRefused(reason(error)) from error
        raise


def check_metastore(error: BaseException) -> None:
    """Raise TargetRefused where Hive's metastore takes no such columns, and how it takes them."""
    if _BY_METASTORE in str(error):
        raise TargetRefused(
            "Hive's metastore refuses the columns: set"
            " hive.metastore.disallow.incompatible.col.type.changes to false there"
        ) from error


def check_length(folder: Path) -> None:
    """Raise TargetRefused where a part of a local path is too long for its file system.

    Asked after a failure: Hadoop says of a folder no more than that it could not be made.
    """
    there = folder
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    try:
        most = os.pathconf(there, "PC_NAME_MAX")
    except OSError:
        most = _LONGEST_NAME
    for part in folder.parts:
        if (size := len(os.fsencode(part))) > most:
            raise TargetRefused(
                f"the folder's name {part[:20]}… has {size} bytes, longer than the {most} bytes"
                " that the disk takes"
            )
