"""Puts a shop's stream into a topic, and notes the offset that each message got."""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Callable, Iterator

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.shop import Shop
from sources.base.port import Outgoing
from sources.base.topics import NotSent
from sources.opening import topics_at

_WITHIN_S = 30.0
"""For the broker's answer to a request; it answers in milliseconds."""
_PROGRESS_EVERY = 20_000


class ProduceError(Exception):
    """The topic or a message could not be written, in one line."""


def create_topic(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """Create a topic; raises ProduceError, also where it exists already."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    for future in client.create_topics([NewTopic(topic, partitions, 1)]).values():
        try:
            future.result(_WITHIN_S)
        except Exception as problem:  # the client raises its own, or a timeout of futures
            raise ProduceError(f"topic {topic} can't be created: {problem}") from problem


def produce(
    bootstrap: str, topic: str, shop: Shop, progress: Callable[[int], None] = lambda _: None
) -> list[int]:
    """Send the whole stream to partition 0, in order; gives each message's offset.

    ``progress`` is told the number of changes sent so far. Raises ProduceError.
    """
    offsets = array("q")
    try:
        sender = topics_at({"bootstrap.servers": bootstrap}).sender()
        sender.send(_records(topic, shop, progress), lambda _, offset: offsets.append(offset))
    except NotSent as problem:
        raise ProduceError(f"messages could not be written to {topic}: {problem}") from problem
    return offsets.tolist()


def _records(topic: str, shop: Shop, progress: Callable[[int], None]) -> Iterator[Outgoing]:
    sent = told = 0
    for message in shop.messages():
        yield Outgoing(topic, 0, None, message.value, ())
        sent += message.rows
        if sent - told >= _PROGRESS_EVERY:
            told = sent
            progress(sent)


def main() -> int:
    """``python -m demo.produce``: a topic with the shop's stream, to try a daemon on."""
    parser = argparse.ArgumentParser(prog="python -m demo.produce", description=main.__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="the broker")
    parser.add_argument("--topic", default="shop", help="made here")
    parser.add_argument("--changes", type=int, default=600_000, help="row changes (600000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another stream")
    options = parser.parse_args()
    shop = Shop(options.changes, options.seed)
    try:
        create_topic(options.bootstrap, options.topic)
        messages = len(produce(options.bootstrap, options.topic, shop))
    except ProduceError as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{options.changes} changes of {len(shop.live)} tables in {messages} messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
