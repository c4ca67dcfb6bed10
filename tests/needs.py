"""What of a machine a test needs beside the project: skipped with a line, or required.

``REQUIRE`` names what has to be there, between spaces or commas: without it the test fails. CI sets
it to the list in ``tests/required.txt``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from actors.runtime.jars import JarsError
from actors.runtime.programs import ProgramMissing
from collector.jars import EXTRA, worker_classpath


def tool(name: str) -> str:
    """The path of a program. Skips the test where the machine lacks it, or fails it."""
    found = shutil.which(name)
    if found is None:
        missing(name, "it is not installed")
    return found


def missing(name: str, why: str) -> NoReturn:
    """End the test: the machine has not got ``name``."""
    said = f"{name} is missing: {why}"
    if name in os.environ.get("REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"{said}, and REQUIRE names it", pytrace=False)
    pytest.skip(said)


@contextmanager
def needed() -> Iterator[None]:
    """End the test where a server that is started inside is missing."""
    try:
        yield
    except ProgramMissing as problem:
        missing(problem.name, problem.why)


def collector_jars() -> None:
    """End the test where Kafka Connect and Debezium are missing."""
    try:
        worker_classpath()
    except JarsError as problem:
        missing(EXTRA, str(problem))
