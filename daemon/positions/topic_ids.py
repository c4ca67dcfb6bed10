"""Detects recreated topics by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from offsets.recovery import PositionError
from offsets.snapshot import Snapshot


def check_topic_ids(recorded: Snapshot, now: Mapping[str, str]) -> None:
    """Refuse a topic that was deleted and recreated: its offsets mean other messages now."""
    for topic, known in recorded.topic_ids.items():
        if topic in now and now[topic] != known:
            raise PositionError(
                f"topic {topic!r} was deleted and made again since the last run (id {known} then, "
                f"{now[topic]} now): the recorded positions and the targets' marks are of the old "
                "one (`binlogd offsets show`). Use another group and other targets, or remove the "
                "offset file and the targets to read the new topic from its start"
            )
