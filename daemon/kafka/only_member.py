"""Stops a member whose group has other members, where only one daemon may write a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from actors.contract.messages import Assigned
from daemon.runtime.backoff import BackOff
from daemon.source.port import GroupMember, NotAnswered
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown

SESSION_MARGIN_S = 5.0
"""Added to a session's length: the coordinator removes a member some time after its end."""

LONGEST_WAIT_S = 60.0
"""For other members to go. An assignment blocks its thread meanwhile: a longer wait comes close to
``daemon.stuck_after_s`` (120 s) and to the time that the group waits for a poll (5 minutes)."""


class _OtherMembers(Exception):
    """The group has other members: their names."""


@dataclass(frozen=True, slots=True)
class OnlyMember:
    """A ``Resolver`` in front of another: at each assignment it asks for the group's members.

    An assignment without partitions counts, so an idle member sees the others, too. A process that
    has ended stays a member until its session is over. So this member waits that long before it
    gives up, and reads nothing meanwhile: a daemon that moved to another machine starts.
    Used on the fetcher's thread only.
    """

    resolve: Callable[[list[TopicPartition]], Assigned]
    members: Callable[[], Sequence[GroupMember]]
    """Who is in the group now, this member included. Raises NotAnswered."""
    group: str
    instance_id: str | None
    """This member's static name in the group; None: it is a dynamic member."""
    reason: str
    """See ``Start.single_writer``."""
    patience: BackOff

    def __call__(self, sources: list[TopicPartition]) -> Assigned:
        """Raises PositionError if the group has other members."""
        try:
            self.patience.call(self._check, (_OtherMembers, NotAnswered), self._warn)
        except _OtherMembers as error:
            raise PositionError(
                f"group {self.group!r} has other members ({error}), and {self.reason}"
            ) from error
        except NotAnswered as error:
            kind = PositionUnknown if error.away else PositionError
            raise kind(f"group {self.group!r}: its members are unknown: {error}") from error
        return self.resolve(sources)

    def _check(self) -> None:
        members = list(self.members())
        if self.instance_id is not None:
            others = [each for each in members if each.instance_id != self.instance_id]
        else:
            # Nothing tells which of the dynamic members is this one: all are named.
            others = members if len(members) > 1 else []
        if others:
            names = (f"{each.instance_id or each.client_id} on {each.host}" for each in others)
            raise _OtherMembers(", ".join(sorted(names)))

    def _warn(self, error: Exception, attempt: int) -> None:
        if attempt > 1:
            return
        log = structlog.get_logger().bind(actor="fetcher-0", group=self.group)
        if isinstance(error, _OtherMembers):
            log.warning("other_members", members=str(error), reason=self.reason)
        else:
            log.warning("members_unknown", reason=str(error))


def patience_s(session_timeout_ms: int) -> float:
    """How long a member may be counted that has ended."""
    return min(session_timeout_ms / 1000 + SESSION_MARGIN_S, LONGEST_WAIT_S)
