"""Keeps what a seed's end can be understood by: its topic, its statements, the daemon's log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.live.daemon import Daemon
from tests.live.flow import Flow
from tests.live.jars import FOLDER

_WITHIN_S = 10.0


def keep(flow: Flow, daemon: Daemon, bootstrap: str, why: str) -> Path:
    """Write it all below ``var/live``, in the place of what an earlier run left of this seed."""
    folder = FOLDER / f"seed-{flow.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "why.txt").write_text(f"{why}\n")
    lines = (
        f"{entry.number:4} {entry.step.kind}: {'; '.join(entry.step.statements)}"
        f"{f'  -- refused: {entry.error}' if entry.error else ''}\n"
        for entry in flow.history.entries
    )
    (folder / "statements.txt").write_text("".join(lines))
    lines = (line for place in flow.topic.places for line in _messages(bootstrap, *place))
    (folder / "topic.jsonl").write_text("".join(lines))
    (folder / "reader.txt").write_text(f"{flow.reader.failure(flow.name)}\n")
    shutil.copy(daemon.log, folder / "binlogd.log")
    return folder


def _messages(bootstrap: str, topic: str, partition: int) -> Iterator[str]:
    """A partition's messages, one a line, without Connect's schemas."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"keep-{topic}"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), _WITHIN_S)
        consumer.assign([TopicPartition(topic, partition, 0)])
        offset = -1
        while offset < end - 1 and (message := consumer.poll(_WITHIN_S)) is not None:
            if message.error():
                return
            offset = message.offset()
            shown = {
                "topic": topic, "partition": partition, "offset": offset,
                "key": bare(message.key()), "value": bare(message.value()),
            }  # fmt: skip
            yield json.dumps(shown, ensure_ascii=False) + "\n"
    finally:
        consumer.close()


def bare(text: bytes | None) -> object:
    """Show a key or a value; one that is no JSON, as Maxwell's keys of statements, as its text."""
    try:
        found = None if text is None else json.loads(text)
    except ValueError:
        return str(text)
    return found.get("payload", found) if isinstance(found, dict) else found
