"""Waits until a consumer group has committed the end of the job's topic."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from bench.compare.job import Job


def await_committed(job: Job, group: str, every_s: float, check: Callable[[], None]) -> None:
    """Return when the group has committed the job's end. ``check``, called at each look, raises
    where that can't come any more."""
    place = TopicPartition(job.topic, 0)
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": group})
    try:
        while True:
            (found,) = consumer.committed([place], timeout=10.0)
            if found.offset >= job.end:
                return
            check()
            time.sleep(every_s)
    finally:
        consumer.close()
