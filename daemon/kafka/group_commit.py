"""The group's commit for commands: read or moved beside the daemon."""

from __future__ import annotations

from typing import Any

from daemon.config.config import Config
from daemon.kafka.commit_store import KafkaCommitStore
from daemon.kafka.member import member_settings
from daemon.kafka.settings import INSTANCE_ID
from daemon.positions.state_id import known_id
from offsets.store import StoreError


def group_store(config: Config, pipeline: str) -> KafkaCommitStore:
    """The store over the group's commit, not started yet."""
    topics, settings = config.pipeline[pipeline].topics, config.kafka_of(pipeline)
    # After a stop the static member still counts for a while: a commit takes its place.
    member = own_member(config, pipeline)
    return KafkaCommitStore(settings, topics, pipeline, config.group(pipeline), member=member)


def own_member(config: Config, pipeline: str) -> dict[str, Any] | None:
    """The settings of this state directory's member, if a daemon is one or was.

    Raises StoreError. Creates nothing: a command that only reads may run as another user, or before
    the first start.
    """
    folder, settings = config.daemon.state_dir, config.kafka_of(pipeline)
    try:
        known = known_id(folder)
    except OSError as error:
        raise StoreError(f"{folder / 'id'} can't be read: {error}") from error
    if known is None and INSTANCE_ID not in settings:
        return None
    return member_settings(settings, pipeline, known or "")
