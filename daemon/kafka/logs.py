"""Kafka's adapter of ``Source``: combines the other files of this folder."""

from __future__ import annotations

from typing import Any

from actors.contract.ports import RecordSource
from changes.formats.auto import make_format
from daemon.config.config import Config
from daemon.kafka import group_commit, positions
from daemon.kafka.append import KafkaAppender
from daemon.kafka.commit_store import KafkaCommitStore
from daemon.kafka.log_reader import LogReader
from daemon.kafka.member import member_settings
from daemon.kafka.only_member import OnlyMember
from daemon.kafka.questions import LogQuestions, asking, group_members
from daemon.kafka.settings import INSTANCE_ID
from daemon.kafka.source import KafkaSource, Resolver
from daemon.kafka.topic_watch import TopicWatch
from daemon.positions.start_resolver import PositionResolver
from daemon.positions.state_id import state_id
from daemon.source.appending import AppendRefused
from daemon.source.port import GroupMember, Start
from offsets.position import TopicPartition


class KafkaLogs:
    """See ``Source``. Each question has a client of its own."""

    def __init__(self, config: Config, pipeline: str) -> None:
        self._config = config
        self._pipeline = pipeline
        self._section = config.pipeline[pipeline]
        self._settings = config.kafka_of(pipeline)
        self._group = config.group(pipeline)

    def topic_ids(self) -> dict[str, str]:
        """See ``Source``."""
        within_s = positions.CONNECT_TIMEOUT_S
        return positions.topic_ids(self._settings, self._section.topics, within_s)

    def identity(self) -> str:
        """See ``Source``."""
        return f"{self._group}@{positions.cluster_id(self._settings)}"

    def ends(self) -> dict[TopicPartition, int]:
        """See ``Source``."""
        return positions.log_ends(self._settings, self._section.topics)

    def questions(self) -> LogQuestions:
        """See ``Source``."""
        return LogQuestions(self._settings)

    def members(self) -> list[GroupMember]:
        """See ``Source``."""
        return group_members(self._settings, self._group)

    def own_instance(self) -> str | None:
        """See ``Source``."""
        member = group_commit.own_member(self._config, self._pipeline)
        return None if member is None else str(member[INSTANCE_ID]) or None

    def group_commit(self) -> KafkaCommitStore:
        """See ``Source``."""
        return group_commit.group_store(self._config, self._pipeline)

    def reader(self, uncommitted: bool = False) -> LogReader:
        """See ``Source``."""
        level = {"isolation.level": "read_uncommitted"} if uncommitted else {}
        return LogReader({**self._settings, **level})

    def appender(self) -> KafkaAppender:
        """See ``Source``."""
        if self._settings.get("isolation.level") == "read_uncommitted":
            raise AppendRefused(
                f"pipeline {self._pipeline} reads uncommitted records (isolation.level): it might "
                "apply one that is taken back"
            )
        return KafkaAppender(self._settings, f"binlogd-replay-{self._group}")

    def consume(self, start: Start) -> RecordSource:
        """See ``Source``."""
        config, section, topics = self._config, self._section, self._section.topics
        settings = {
            "queued.max.messages.kbytes": config.memory.queue_kbytes(
                config.memory_shares()[self._pipeline]
            ),
            **member_settings(self._settings, self._pipeline, state_id(config.daemon.state_dir)),
        }
        keyed = make_format(section.format, section.format_options()).keyed
        with asking():
            watch = TopicWatch(settings, {t: start.recorded.topic_ids[t] for t in topics})
            resolve: Resolver = PositionResolver(
                settings=settings,
                group=self._group,
                pipeline=section,
                load=start.load,
                apply_force=start.apply_force,
                check_topics=watch.check,
            )
            more: dict[str, Any] = {"keyed": keyed, "watch": watch}
            if start.single_writer is not None:
                only = OnlyMember(self.members, self._group, settings, start.single_writer)
                resolve, more["may_join"] = only.before(resolve), only.may_join
            return KafkaSource(settings, topics, self._group, resolve, self._pipeline, **more)
