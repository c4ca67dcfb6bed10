"""The daemon's member id in its groups, and what happens when the id is taken.

A static member (``group.instance.id``) is recognised after a restart: its partitions wait for it
and nobody else rebalances. After ``kill -9`` the classic protocol gives them to the new process at
once, not when the dead one's session is over.

If two members have one id, the classic protocol fences the older one. The new protocol
(``group.protocol=consumer``) refuses the younger until the older has left or its session is over,
and librdkafka then treats its client as ended. After ``kill -9`` that is no reason to stop: a new
client asks for the id again.

A member can fence itself, too. When the brokers are away for longer than its session, librdkafka
forgets its member id but keeps the commits that wait for the coordinator. It sends them when the
brokers are back, and for the classic protocol they come from another member with the same id. So
after a session that was over, the id is claimed again, once until the group has accepted the
member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from sources.kafka.settings import INSTANCE_ID

FENCED = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
IN_USE = KafkaError(KafkaError.UNRELEASED_INSTANCE_ID).str()
"""librdkafka's wording. For a fatal error it gives the text, but not the code beneath."""

AGAIN_S = 1.0
"""Between two claims of an id in use: the most that a start is late once the id is free."""

PATIENCE_S = 120.0
"""How long a dead process may hold an id. By Kafka's defaults a session lasts 45 s, 60 s at most
(``group.consumer.max.session.timeout.ms``). A holder that stays longer is alive."""


def member_settings(settings: Mapping[str, Any], pipeline: str, state_id: str) -> dict[str, Any]:
    """The settings with the member's id: the configured one, else one made from pipeline and state
    directory. An empty id in the configuration means a dynamic member."""
    # Kafka's clients allow only these signs in an id; a pipeline's name may have others.
    name = re.sub(r"[^a-zA-Z0-9._-]", "_", pipeline)[:200]
    return {INSTANCE_ID: f"binlogd-{name}-{state_id}", **settings}


class Claim:
    """A member's claim to its id in the group. Only the fetcher's thread calls it; has no clock."""

    def __init__(self, group: str, instance_id: object, patience_s: float = PATIENCE_S) -> None:
        self._member = f"group {group!r}, {INSTANCE_ID} {instance_id!r}"
        self._patience_s = patience_s
        self._since: float | None = None
        self._again_at: float | None = None
        self._session_over = False

    def lost(self, said: str, now: float) -> str | None:
        """The error to stop the pipeline with, now that its client has ended with this text. None
        if the id is to be claimed again."""
        if FENCED in said:
            if self._session_over:
                self._session_over, self._again_at = False, now + AGAIN_S
            if self._again_at is not None:
                return None
            return (
                f"{self._member}: another daemon joined with this id, and this one was put out: a"
                " copy of the state directory, or the same id in two configurations. Stop one of"
                " them. A copy becomes a member of its own when it is stopped, its file `id` is"
                " removed, and it is started with `binlogd run`"
            )
        if IN_USE not in said:
            return f"Kafka client: {said}"
        if self._since is None:
            self._since = now
        if now - self._since >= self._patience_s:
            return (
                f"{self._member}: the id has been in use for {self._patience_s:g} s by another"
                " daemon that is alive: on a copy of the state directory, or with the same id in"
                " its configuration. Stop it, then `binlogd resume PIPELINE` here; or, if this is"
                " the copy, stop this one, remove the file `id` of its state directory, and start"
                " it with `binlogd run`"
            )
        self._again_at = now + AGAIN_S
        return None

    def session_over(self) -> None:
        """The assignment is lost: the session is over, or will be when the group hears from this
        member again."""
        self._session_over = True

    def is_due(self, now: float) -> bool:
        """Whether it is time to claim the id again. True only once per claim."""
        due = self._again_at is not None and now >= self._again_at
        if due:
            self._again_at = None
        return due

    @property
    def waits(self) -> bool:
        """Whether another member uses the id."""
        return self._since is not None

    def granted(self) -> None:
        """The group has accepted this member."""
        self._since = self._again_at = None
        self._session_over = False
