"""What a call into the JVM raises, and why, in one line."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

JavaFailure = (Py4JError, PySparkException)
"""What a call into the JVM raises: Java's exception as it is, or one that pyspark knows."""

_REASON_CHARACTERS = 300
"""A reason is one line in a log: enough for a path and two types, too little for a query plan."""

Java = Any
"""An object that lives in the JVM."""


def java_class(error: BaseException) -> str:
    """The full name of the Java class behind a failure, empty where there is none."""
    java = _throwable(error)
    return "" if java is None else str(java.getClass().getName())


def java_classes(error: BaseException) -> tuple[str, ...]:
    """The full names of the classes behind a failure, down to the deepest cause."""
    java, names = _throwable(error), []
    while java is not None:
        names.append(str(java.getClass().getName()))
        java = java.getCause()
    return tuple(names)


def java_causes(error: BaseException) -> tuple[str, ...]:
    """Each exception behind a failure as ``class: message``, down to the deepest cause."""
    java, told = _throwable(error), []
    while java is not None:
        told.append(f"{java.getClass().getName()}: {java.getMessage()}")
        java = java.getCause()
    return tuple(told)


def reason(error: BaseException) -> str:
    """Why a call failed, in one line: the first line of the deepest cause that has a message."""
    java, text, name = _throwable(error), "", ""
    while java is not None:
        if message := java.getMessage():
            text, name = str(message), str(java.getClass().getSimpleName())
        java = java.getCause()
    if not text:
        text, name = str(error), type(error).__name__
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{name}: {line}"[:_REASON_CHARACTERS]


def _throwable(error: BaseException) -> Java | None:
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    # pyspark turns what it knows into its own exceptions and keeps Java's as the origin.
    return getattr(error, "_origin", None)
