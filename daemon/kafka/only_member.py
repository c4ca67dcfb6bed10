"""Stops a member whose group has other members, where only one daemon may write a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from actors.contract.messages import Assigned
from daemon.kafka.settings import INSTANCE_ID, SESSION_TIMEOUT_MS
from daemon.kafka.source import Resolver
from daemon.runtime.backoff import BackOff
from daemon.source.port import GroupMember, NotAnswered
from offsets.position import TopicPartition
from offsets.recovery import PositionError, PositionUnknown

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
