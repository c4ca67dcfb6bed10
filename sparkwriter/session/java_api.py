"""What a call into the JVM raises, and why, in one line."""

from __future__ import annotations

import gc
import itertools
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage
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


# Java objects that Python is done with: the JVM holds each until Python's collector finds it.

CALLS_BETWEEN = 16
"""Of all writers together: half a second of small writes."""

LOOKS_BETWEEN = 8
"""From a look at everything to the next. To look at what is new takes milliseconds, but what is in
use then is old afterwards; to look at all takes 40 ms beside 60,000 messages that wait (measured:
a seventh of the rate if each look were one)."""

_NEW, _ALL = 1, 2
"""Generations of Python's collector: what came since the last look, and everything."""


class JavaGarbage:
    """Has the collector look after every so many calls of the sinks. Any thread."""

    def __init__(self, calls: int = CALLS_BETWEEN, looks: int = LOOKS_BETWEEN) -> None:
        self._calls = calls
        self._looks = looks
        # next() on a count is atomic under the GIL and in free-threaded Python alike.
        self._numbers = itertools.count(1)

    def called(self) -> None:
        """A call of a sink has ended, however it did."""
        looks, between = divmod(next(self._numbers), self._calls)
        if between == 0:
            gc.collect(_ALL if looks % self._looks == 0 else _NEW)


# Java's packages, classes and static methods by their names, each looked up once.


class JavaNames:
    """A place in the tree of names that keeps what was found below it.

    Valid as long as its JVM: one that was started again needs another.
    """

    def __init__(self, place: Java) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Java:
        """What has that name here; queried from the JVM only the first time."""
        found = getattr(self._place, name)
        if isinstance(found, (JavaPackage, JavaClass)):
            found = JavaNames(found)
        # Never a value: a static field is read again each time.
        if isinstance(found, JavaNames) or callable(found):
            self.__dict__[name] = found
        return found

    def __call__(self, *arguments: object) -> Java:
        """A new object of the class."""
        return self._place(*arguments)
