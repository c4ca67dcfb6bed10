"""Under which id a daemon is a member of its groups, and what becomes of it when that is taken.

A member with an id of its own (``group.instance.id``, "static") is known again after a restart:
its partitions wait for it, nobody else is disturbed, and after ``kill -9`` the classic protocol
gives them to the new process at once, not when the dead one's session has run out.

Two members of one id: the classic protocol puts the older one out. The new one
(``group.protocol=consumer``) refuses the younger until the older has left or its session is over,
and librdkafka takes that for the end of the client. After ``kill -9`` it is no end: the id is asked
for again, with a client made anew.

A member can put itself out, too. When the brokers are away for longer than its session, librdkafka
forgets its member id, but keeps the commits that wait for the coordinator; it sends them when the
brokers are back, and for the classic protocol they are another's with the same id. So where the
session was over the id is claimed again, once until the group has taken the member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from daemon.kafka.settings import INSTANCE_ID

FENCED = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
IN_USE = KafkaError(KafkaError.UNRELEASED_INSTANCE_ID).str()
"""As librdkafka says it. Of a fatal error it gives the text, but not the code beneath."""

AGAIN_S = 1.0
"""Between two claims of an id that is in use: what a start may be late when it gets free."""

PATIENCE_S = 120.0
"""How long an id may be in use by a process that is gone. By Kafka's defaults a session lasts 45 s,
60 s at most (``group.consumer.max.session.timeout.ms``): what holds it for longer is alive."""


def member_settings(settings: Mapping[str, Any], pipeline: str, state_id: str) -> dict[str, Any]:
    """The settings with the member's id: the configuration's, else one of pipeline and state
    directory. An empty one in the configuration is none: a member that nobody knows again."""
    # Kafka's clients allow these signs in an id, a pipeline's name may have others.
    name = re.sub(r"[^a-zA-Z0-9._-]", "_", pipeline)[:200]
    return {INSTANCE_ID: f"binlogd-{name}-{state_id}", **settings}


class Claim:
    """A member's claim to its id in the group. Used by the fetcher's thread; knows no clock."""

    def __init__(self, group: str, instance_id: object, patience_s: float = PATIENCE_S) -> None:
        self._member = f"group {group!r}, {INSTANCE_ID} {instance_id!r}"
        self._patience_s = patience_s
        self._since: float | None = None
        self._again_at: float | None = None
        self._session_over = False

    def lost(self, said: str, now: float) -> str | None:
        """What the pipeline stops with, now that its client has ended with these words; None where
        the id is to be claimed again."""
        if FENCED in said:
            if self._session_over:
                self._session_over, self._again_at = False, now + AGAIN_S
            if self._again_at is not None:
                return None
            return (
                f"{self._member}: another daemon has come under this id and this one is out: a"
                " copy of the state directory, or the same id in two configurations. Stop one of"
                " them; a copy becomes a member of its own when its file `id` is removed, then"
                " start it with `binlogd run`"
            )
        if IN_USE not in said:
            return f"Kafka client: {said}"
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience_s:
            return (
                f"{self._member}: the id has been in use for {self._patience_s:g} s by another"
                " daemon that is alive: on a copy of the state directory, or with the same id in"
                " its configuration. Stop it; or, if this is the copy, remove the file `id` of its"
                " state directory; then start this one with `binlogd run`"
            )
        self._again_at = now + AGAIN_S
        return None

    def session_over(self) -> None:
        """What was assigned is lost: the session has run out, or will have when the group hears of
        this member again."""
        self._session_over = True

    def is_due(self, now: float) -> bool:
        """Whether it is time to claim the id again; told once."""
        due = self._again_at is not None and now >= self._again_at
        if due:
            self._again_at = None
        return due

    @property
    def waits(self) -> bool:
        """Whether the id is in use by another."""
        return self._since is not None

    def granted(self) -> None:
        """The group has taken this member."""
        self._since = self._again_at = None
        self._session_over = False
