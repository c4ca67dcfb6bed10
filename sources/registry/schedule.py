"""Which schema is requested next, and what the registry's answers mean. Pure: times are arguments.

A schema is *missing* while it is not kept: messages wait for it. A kept one is *compared* with the
registry's now and then, since a registry that was emptied gives its numbers a second meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.backoff import Waits
from changes.formats.wire.schemas import SchemaId
from sources.registry.errors import RegistryAway

WAITS = Waits(1.0, 30.0)
"""Between questions to a registry that does not answer, and for a schema that it does not have."""

Answers = list[tuple[Address, object]]
"""Messages, each with its receiver."""


@dataclass(slots=True)
class _Asked:
    """An identity that is in use. ``due``: when the registry is queried for it; None: a query is
    open. ``missing_since``: since when the registry says that it has none. ``failures``: queries
    for it in a row that had no answer."""

    users: set[Address] = field(default_factory=set)
    kept: bool = False
    due: float | None = 0.0
    missing_since: float | None = None
    given_up: bool = False
    failures: int = 0


class Schedule:
    """The identities of one registry that are in use. One thread at a time."""

    def __init__(self, registry: str, not_found_s: float, check_every_s: float) -> None:
        self._registry = registry
        self._not_found_s = not_found_s
        self._check_every_s = check_every_s
        self._asked: dict[SchemaId, _Asked] = {}
        self._away: RegistryAway | None = None
        self._failures = 0
        self._retry_at = 0.0

    def want(self, user: Address, identity: SchemaId, *, kept: bool, now: float) -> None:
        """An actor uses an identity. ``kept``: it is in the folder already, and only compared."""
        known = self._asked.get(identity)
        if known is None:
            known = self._asked[identity] = _Asked(kept=kept, due=now)
        known.users.add(user)
        if known.kept and not kept:  # its file is gone
            known.kept = False
            known.due = now if known.due is not None else None
        if known.given_up:  # its messages are refused with what the registry says now
            known.given_up, known.missing_since = False, None
            known.due = now if known.due is not None else None

    def forget(self, user: Address) -> None:
        """An actor has ended: its identities are nobody's."""
        for identity, asked in list(self._asked.items()):
            asked.users.discard(user)
            if not asked.users:
                del self._asked[identity]

    def take_due(self, now: float, most: int) -> list[SchemaId]:
        """The identities to query now, those that messages wait for first. A registry that does not
        answer gets a single query, and seldom: for each identity in turn, since it may fail for
        one alone."""
        away = self._away is not None
        if away and now < self._retry_at:
            return []
        due = [
            (not away and each.kept, each.due, identity)
            for identity, each in self._asked.items()
            if each.due is not None and each.due <= now
        ]
        due.sort(key=itemgetter(0, 1))
        found = [identity for _, _, identity in due[: 1 if away else most]]
        for identity in found:
            self._asked[identity].due = None
        return found

    def next_at(self) -> float | None:
        """When something is due next, None where nothing is."""
        dues = [each.due for each in self._asked.values() if each.due is not None]
        first = min(dues, default=None)
        return first if first is None or self._away is None else max(first, self._retry_at)

    @property
    def away(self) -> str | None:
        """Why the registry gives no answer, None while it does."""
        return None if self._away is None else str(self._away)

    # --- answers

    def kept(self, identity: SchemaId, now: float) -> Answers:
        """It was fetched and is kept, or is the same as the kept one."""
        out = self._answered(identity, now)
        if (asked := self._asked.get(identity)) is None:
            return out
        new, asked.kept = not asked.kept, True
        asked.missing_since, asked.given_up = None, False
        asked.due = now + self._check_every_s
        return out + self._tell(identity, msg.SchemasKept((identity,))) if new else out

    def not_found(self, identity: SchemaId, reason: str, now: float) -> Answers:
        """The registry has no such schema. That of a kept one was removed, which changes nothing
        of what it means."""
        out = self._answered(identity, now)
        if (asked := self._asked.get(identity)) is None:
            return out
        if asked.kept:
            asked.due = now + self._check_every_s
            return out
        if asked.missing_since is None:
            asked.missing_since = now
        for_s = now - asked.missing_since
        if for_s < self._not_found_s:
            asked.due = min(now + WAITS.base_s, asked.missing_since + self._not_found_s)
            return out
        asked.due = now + max(WAITS.max_s, self._not_found_s)
        if asked.given_up:
            return out
        asked.given_up = True
        said = f"{reason} (for {for_s:.0f} s)" if for_s >= 1 else reason
        return out + self._tell(identity, msg.SchemaMissing(identity, said))

    def unfit(self, identity: SchemaId, reason: str, now: float) -> Answers:
        """The registry has it, and nobody can decode with it."""
        out = self._answered(identity, now)
        if (asked := self._asked.get(identity)) is None:
            return out
        asked.due = now + max(WAITS.max_s, self._check_every_s)
        asked.given_up = True
        return out + self._tell(identity, msg.SchemaMissing(identity, reason))

    def changed(self, identity: SchemaId, reason: str, now: float) -> Answers:
        """It is another schema than the kept one: nothing is decoded with either."""
        out = self._answered(identity, now)
        if (asked := self._asked.get(identity)) is None:
            return out
        asked.kept = False
        asked.due = now + WAITS.max_s
        return out + self._tell(identity, msg.SchemaRefused(identity, reason))

    def failed(self, identity: SchemaId, error: RegistryAway, now: float) -> Answers:
        """The registry gave no answer. This one waits by itself, too: where the others are
        answered, it is no reason to ask without an end."""
        self._failures += 1
        self._retry_at = now + WAITS.after(self._failures)
        if (asked := self._asked.get(identity)) is not None:
            asked.failures += 1
            asked.due = now + WAITS.after(asked.failures)
            asked.missing_since = None  # no answer is no "not found"
        news = self._away is None or str(self._away) != str(error)
        self._away = error
        return self._tell_all() if news else []

    def state_for(self, user: Address) -> Answers:
        """What an actor that comes late has to know of the registry."""
        return [] if self._away is None else [(user, self._state())]

    def _answered(self, identity: SchemaId, now: float) -> Answers:
        """The registry answers. After an outage all kept ones are compared: it may be another."""
        self._failures = 0
        if (asked := self._asked.get(identity)) is not None:
            asked.failures = 0
        if self._away is None:
            return []
        self._away = None
        for asked in self._asked.values():
            if asked.kept and asked.due is not None:
                asked.due = now
        return self._tell_all()

    def _state(self) -> msg.RegistryState:
        return msg.RegistryState(self._registry, self.away)

    def _tell_all(self) -> Answers:
        users = {user for asked in self._asked.values() for user in asked.users}
        return [(user, self._state()) for user in sorted(users)]

    def _tell(self, identity: SchemaId, message: object) -> Answers:
        return [(user, message) for user in sorted(self._asked[identity].users)]
