"""Java objects that Python is done with do not fill the JVM until Python's collector comes by."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkwriter.java_garbage import JavaGarbage

WITHIN_S = 20.0


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As in the daemon, where it comes after 100,000 objects."""
    gc.disable()
    yield
    gc.enable()


def is_gone(jvm: Any, reference: Any, within_s: float) -> bool:
    """Whether the JVM frees it in that time: a thread of py4j tells it what is let go of."""
    until = time.monotonic() + within_s
    while not reference.refersTo(None):
        if time.monotonic() > until:
            return False
        jvm.java.lang.System.gc()
    return True


@pytest.mark.parametrize(("old", "calls"), [(False, 3), (True, 6)])
def test_what_calls_leave_in_the_jvm_is_freed_after_so_many(
    spark: SparkSession, no_collector: None, old: bool, calls: int
) -> None:
    """Each would keep a table's whole metadata alive, of every write since the last look. What was
    in use at a look is found at the next look at everything."""
    jvm = spark.sparkContext._jvm
    garbage = JavaGarbage(calls=3, looks=2)
    held = jvm.java.util.ArrayList()
    assert held.size() == 0
    reference = jvm.java.lang.ref.WeakReference(held)
    if old:
        gc.collect()
    del held
    for _ in range(calls - 1):
        garbage.called()
    assert not is_gone(jvm, reference, 0.5)
    garbage.called()
    assert is_gone(jvm, reference, WITHIN_S)
