"""Kafka's adapter of ``Source``: combines the other files of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import structlog

from actors.contract.messages import Assigned
from actors.contract.ports import RecordSource
from actors.runtime.backoff import BackOff
from actors.runtime.files import state_id
from changes.formats import make_format
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown
from sources.base.configuration import Configuration
from sources.base.port import AppendRefused, GroupMember, NotAnswered, Start
from sources.kafka import commit_store as group_commit
from sources.kafka.admin import Admin
from sources.kafka.answers import asking
from sources.kafka.append import KafkaAppender
from sources.kafka.cluster import Groups
from sources.kafka.commit_store import KafkaCommitStore
from sources.kafka.log_probe import KafkaLogProbe
from sources.kafka.log_reader import LogReader
from sources.kafka.member import member_settings
from sources.kafka.settings import INSTANCE_ID, SESSION_TIMEOUT_MS, problems
from sources.kafka.source import KafkaSource, Resolver
from sources.kafka.start_resolver import PositionResolver
from sources.kafka.topic_finder import FollowedTopics, TopicFinder, refresh_settings
from sources.kafka.topic_watch import TopicWatch

# Stops a member whose group has other members, where only one daemon may write a sink.

SESSION_MARGIN_S = 5.0
"""Added to a session's length: the coordinator removes a member some time after its end."""

LONGEST_WAIT_S = 60.0
"""For other members to go. The fetcher's thread is blocked meanwhile: a longer wait comes close to
``daemon.stuck_after_s`` (120 s)."""

ASSIGNED_WAIT_S = 5.0
"""The same at an assignment: for a member that is leaving. The new group protocol gives nobody the
partitions of a member whose assignment waits."""


class _OtherMembers(Exception):
    """The group has other members: their names."""


class OnlyMember:
    """Asks for the group's members before this one joins, and at each assignment.

    So a second daemon stops without disturbing the first. The check at an assignment finds two that
    start at the same time, and members that know nothing of this rule. While there are others,
    nothing is read. Used on the fetcher's thread only.
    """

    def __init__(
        self,
        members: Callable[[], Sequence[GroupMember]],
        group: str,
        settings: Mapping[str, Any],
        reason: str,
        make_back_off: Callable[[float], BackOff] = BackOff,
    ) -> None:
        """``members`` tells who is in the group, or raises NotAnswered. ``settings`` are the
        consumer's. ``reason``: see ``Start.single_writer``. ``make_back_off`` takes the seconds to
        wait for others."""
        self._members = members
        self._group = group
        self._instance_id = settings.get(INSTANCE_ID) or None
        self._session_s = int(settings.get("session.timeout.ms", SESSION_TIMEOUT_MS)) / 1000
        self._reason = reason
        self._make_back_off = make_back_off

    def may_join(self) -> None:
        """Wait for the session of a member that has ended, such as this daemon on another machine.
        Raises PositionError if the group still has members then."""
        self._check(min(self._session_s + SESSION_MARGIN_S, LONGEST_WAIT_S), joined=False)

    def before(self, resolve: Resolver) -> Resolver:
        """A ``Resolver`` that raises PositionError if the group has other members.

        An assignment without partitions counts, so an idle member sees the others, too.
        """

        def checked(sources: list[TopicPartition]) -> Assigned:
            self._check(ASSIGNED_WAIT_S, joined=True)
            return resolve(sources)

        return checked

    def _check(self, wait_s: float, joined: bool) -> None:
        back_off = self._make_back_off(wait_s)
        passing = (_OtherMembers, NotAnswered)
        try:
            back_off.call(lambda: self._look(joined), passing, self._warn)
        except _OtherMembers as error:
            raise PositionError(
                f"group {self._group!r} has other members ({error}; one that has ended counts "
                f"until its session is over), and {self._reason}"
            ) from error
        except NotAnswered as error:
            kind = PositionUnknown if error.away else PositionError
            raise kind(f"group {self._group!r}: its members are unknown: {error}") from error

    def _look(self, joined: bool) -> None:
        members = list(self._members())
        if self._instance_id is not None:
            others = [each for each in members if each.instance_id != self._instance_id]
        else:
            # Nothing tells which of the dynamic members is this one: all are named.
            others = members if len(members) > joined else []
        if others:
            names = (f"{each.instance_id or each.client_id} on {each.host}" for each in others)
            raise _OtherMembers(", ".join(sorted(names)))

    def _warn(self, error: Exception, attempt: int) -> None:
        if attempt > 1:
            return
        log = structlog.get_logger().bind(actor="fetcher-0", group=self._group)
        if isinstance(error, _OtherMembers):
            log.warning("other_members", members=str(error), reason=self._reason)
        else:
            log.warning("members_unknown", reason=str(error))


class KafkaLogs:
    """See ``Source``. All questions have one client, made with the first."""

    def __init__(self, config: Configuration, pipeline: str) -> None:
        self._config = config
        self._pipeline = pipeline
        self._section = config.pipeline[pipeline]
        self._topics = config.topics_of(pipeline)
        self._settings = config.kafka_of(pipeline)
        self._group = config.group(pipeline)
        self._questions: Admin | None = None

    def topic_ids(self) -> dict[str, str]:
        """See ``Source``."""
        admin = self.questions()
        self._reach(admin)
        return {topic: id_ for topic, (id_, _) in admin.selected(self._topics).items()}

    def identity(self) -> str:
        """See ``Source``."""
        return f"{self._group}@{self._reach(self.questions())}"

    def _reach(self, admin: Admin) -> str:
        """The id of the cluster. Where nobody answers, what is to be done about it, too."""
        try:
            return admin.reach()
        except NotAnswered as error:
            raise NotAnswered(f"{error}{self._config.kafka_hint}", error.away) from error

    def ends(self) -> dict[TopicPartition, int]:
        """See ``Source``."""
        admin = self.questions()
        return admin.ends([p for _, mine in admin.selected(self._topics).values() for p in mine])

    def questions(self) -> Admin:
        """See ``Source``."""
        if self._questions is None:
            self._questions = Admin(self._settings)
        return self._questions

    def members(self) -> list[GroupMember]:
        """See ``Source``."""
        return Groups(self._settings).members(self._group)

    def own_instance(self) -> str | None:
        """See ``Source``."""
        member = group_commit.own_member(self._config, self._pipeline)
        return None if member is None else str(member[INSTANCE_ID]) or None

    def group_commit(self) -> KafkaCommitStore:
        """See ``Source``."""
        return group_commit.group_store(self._config, self._pipeline)

    def probe(self) -> KafkaLogProbe:
        """See ``Source``."""
        return KafkaLogProbe(self._settings, self._topics)

    def problems(self) -> Iterator[tuple[str, str]]:
        """See ``Source``."""
        for key, reason in problems(self._settings, self._group):
            own = key is None or key in self._section.kafka
            at = f"pipeline.{self._pipeline}.kafka" if own else "kafka"
            yield (f"{at}.{key}" if key else at), reason

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
        config, section, topics = self._config, self._section, self._topics
        settings = {
            "queued.max.messages.kbytes": config.queue_kbytes(self._pipeline),
            **member_settings(self._settings, self._pipeline, state_id(config.daemon.state_dir)),
        }
        settings = refresh_settings(settings, topics)
        keyed = make_format(section.format, section.format_options()).keyed
        begun = start.recorded.topic_ids
        with asking():
            known = {topic: id_ for topic, id_ in begun.items() if topics.reads(topic)}
            watch = TopicWatch(settings, known, topics.comes_and_goes)
            resolve: Resolver = PositionResolver(
                settings=settings,
                group=self._group,
                pipeline=section,
                load=start.load,
                apply_force=start.apply_force,
                check_topics=watch.check,
                begun=begun,
                there=self.questions().partitions_of(topics) if start.apply_force else None,
            )
            more: dict[str, Any] = {"keyed": keyed, "watch": watch}
            if topics.patterns:
                more["following"] = self._following(settings, start)
            if start.single_writer is not None:
                only = OnlyMember(self.members, self._group, settings, start.single_writer)
                resolve, more["may_join"] = only.before(resolve), only.may_join
            names = list(topics.names)
            return KafkaSource(settings, names, self._group, resolve, self._pipeline, **more)

    def _following(self, settings: Mapping[str, Any], start: Start) -> FollowedTopics:
        topics, until = self._topics, start.until
        there = self.questions().names() if until is None else {source.topic for source in until}
        return FollowedTopics(
            TopicFinder(settings, topics, there),
            topics,
            topics.matching(there),
            start.recorded.topic_ids,
            self._pipeline,
            takes_new=until is None,
        )
