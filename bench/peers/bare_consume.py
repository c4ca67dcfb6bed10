"""Consumption alone: ``consume(5000)`` and ``value()``, nothing else. What any consumer in Python
can't get past with this client in one thread."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from bench.compare.job import Begin, End, read_job, tell


def main() -> None:
    """Read the topic."""
    job = read_job()
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "bare",
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 32 * 1024,
        }
    )
    tell(Begin())
    consumer.assign([TopicPartition(job.topic, 0, 0)])
    seen = 0
    while seen < job.end:
        seen += len([message.value() for message in consumer.consume(5000, 1.0)])
    tell(End(seen))
    consumer.close()


if __name__ == "__main__":
    main()
