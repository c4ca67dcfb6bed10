"""The group's commit as commands see it: read, or moved, beside the daemon."""

from __future__ import annotations

from daemon.config import Config
from daemon.kafka_member import member_settings
from daemon.state_id import state_id
from daemon.stores.kafka_commit import KafkaCommitStore
from offsets.position import TopicPartition


def group_store(config: Config, pipeline: str) -> KafkaCommitStore:
    """The store that is the group's commit, not started yet."""
    topics, settings = config.pipeline[pipeline].topics, config.kafka_of(pipeline)
    # After a stop the static member counts for a while yet: a commit takes its place.
    member = member_settings(settings, pipeline, state_id(config.daemon.state_dir))
    return KafkaCommitStore(settings, topics, pipeline, config.group(pipeline), member=member)


def committed(config: Config, pipeline: str) -> dict[TopicPartition, int]:
    """What the group has committed of the pipeline's topics. Raises StoreError."""
    store = group_store(config, pipeline)
    store.start()
    try:
        found = store.get().snapshot
    finally:
        store.stop()
    return {} if found is None else {s: state.frontier for s, state in found.partitions.items()}
