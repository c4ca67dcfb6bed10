"""Java objects that Python is done with do not fill the JVM until Python's collector comes by."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sparkwriter.session.java_api import JavaGarbage


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As in the daemon, where it comes after 100,000 objects."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("old", "calls"), [(False, 3), (True, 6)])
def test_what_calls_leave_is_let_go_after_so_many(
    spark: SparkSession, no_collector: None, old: bool, calls: int
) -> None:
    """Each would keep a table's whole metadata in the JVM, of every write since the last look. What
    was in use at a look is found at the next look at everything. The JVM is told by py4j."""
    garbage = JavaGarbage(calls=3, looks=2)
    held = spark.sparkContext._jvm.java.util.ArrayList()
    held.size()  # whoever has called a method is in a cycle with it
    wrapper = weakref.ref(held)
    if old:
        gc.collect()
    del held
    for _ in range(calls - 1):
        garbage.called()
    assert wrapper() is not None
    garbage.called()
    assert wrapper() is None
