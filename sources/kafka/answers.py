"""What the client's errors mean: nobody is there, it is refused, or it is not known yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from sources.base.port import NotAllowed, NotAnswered
from sources.kafka.settings import PASSING

MOVED = frozenset({KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH})
"""The client knows another leader than the broker: one was elected a moment ago."""

AWAY = PASSING | MOVED | {KafkaError._WAIT_COORD, KafkaError._TIMED_OUT_QUEUE, KafkaError._NOENT}
"""Errors that mean that nobody was there: no coordinator, no leader (``_NOENT``)."""

SETTLING = MOVED | frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError._NOENT,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors about a topic, a group or a broker that came up a moment ago. librdkafka retries commits
itself, queries it does not."""

SETTLE_S = 0.1
"""Between two queries to such a broker."""

REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the consumer group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the transactional id",
}
"""Errors that mean that the user may not do this: of what it lacks the right."""

T = TypeVar("T")


def missing_right(error: KafkaError, right: str = "READ") -> str:
    """What an error of the client says of the user's rights, as the end of a line; else nothing.

    ``right``: what the call needs of a topic or the cluster. READ of a topic has DESCRIBE in it.
    """
    what = REFUSED.get(error.code())
    if what is None:
        return ""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return f" (the Kafka user lacks READ on {what}: set `group` to one that it may read)"
    return f" (the Kafka user lacks {right} on {what})"


def said_by(error: BaseException, right: str = "READ") -> str:
    """An exception of the client as one line. ``right``: what the call needs of a topic."""
    if isinstance(error, KafkaException):
        known: KafkaError = error.args[0]
        return str(known.str() or known.name()) + missing_right(known, right)
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)


@contextmanager
def asking(right: str = "READ") -> Iterator[None]:
    """Turn the client's exceptions into NotAnswered. ``right``: see ``said_by``."""
    try:
        yield
    except KafkaException as error:
        code = error.args[0].code()
        if code in REFUSED:
            raise NotAllowed(said_by(error, right), away=False) from error
        raise NotAnswered(said_by(error, right), code in AWAY, code in SETTLING) from error
    except TimeoutError as error:
        raise NotAnswered(said_by(error), away=True) from error


def when_settled(act: Callable[[], T], deadline: float) -> T:
    """What ``act`` returns. A query that a starting broker can't answer yet is sent again until
    ``deadline`` (monotonic seconds). Raises NotAnswered."""
    while True:
        try:
            return act()
        except NotAnswered as error:
            if not error.settling or time.monotonic() > deadline:
                raise
        threading.Event().wait(SETTLE_S)
