"""Confluent's Parallel Consumer: consumption alone, each message handed to a function of nothing.

It keeps the order of messages with the same key, in parallel by key. The workloads' messages have
no keys, as Canal sends them, and all messages without a key count as one key: so it reads a copy
of the topic whose messages have their table as the key, which keeps the order that binlogd keeps
(``{"order": "KEY"}``, the default). With ``UNORDERED`` it keeps none, with ``PARTITION`` that of
the partition. The copy is made before the clock begins, so are the class and the JVM.

It has its own defaults, 16 threads among them, but polls of up to 5,000 messages, and 2 GB of heap.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from actors.runtime.jars import JarsError
from bench.compare.job import Begin, End, Job, Missing, read_job, tell
from bench.peers.copied_topic import copied_topic
from bench.peers.jars import classpath, fetch_peer
from bench.peers.java_program import compile_class, run_class

LIST = "parallel-consumer"
_THREADS = 16


class _Head(msgspec.Struct):
    table: str


_head = msgspec.json.Decoder(_Head)


def by_table(value: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """A Canal message with its table as the key."""
    yield _head.decode(value).table.encode(), value


def main() -> None:
    """Take the job's topic, or say why that can't be."""
    job = read_job()
    if job.format != "canal-json":
        tell(Missing(f"the key is taken from Canal's JSON, not from {job.format}"))
        return
    try:
        fetch_peer(LIST, Path(job.peer_jars))
        jars = Path(job.peer_jars) / LIST
        compiler, libraries = classpath(jars / "compiler"), classpath(jars / "consumer")
    except JarsError as problem:
        tell(Missing(str(problem)))
        return
    _consume(job, compiler, libraries)


def _consume(job: Job, compiler: str, libraries: str) -> None:
    folder = Path(job.folder)
    compile_class("ConsumeAll", compiler, libraries, folder)
    order = job.variant.get("order", "KEY")
    with ExitStack() as stack:
        topic, count = job.topic, job.end
        if order == "KEY":
            topic, count = stack.enter_context(copied_topic(job, by_table))
        threads = job.variant.get("threads", _THREADS)
        group = f"{LIST}-{uuid.uuid4().hex[:8]}"
        arguments = (job.bootstrap, topic, count, order, threads, group)
        options = ["-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        path = os.pathsep.join([str(folder), libraries])
        for line in run_class("ConsumeAll", path, arguments, folder / "jvm.log", options):
            match line.split():
                case ["begin", pid]:
                    tell(Begin(int(pid)))
                case ["end"]:
                    tell(End(job.end, {"order": order}))


if __name__ == "__main__":
    main()
