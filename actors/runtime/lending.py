"""Lends what the owners of a budget leave of it to those that need more.

A part of the budget is set aside, and each owner may hold its share of that at any time. The rest
is lent to those that come first. So an owner that holds nothing keeps little from the others, none
is held up below its own share, and together they never hold more than the budget: nothing has to
be taken back from an owner that can't give it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

SET_ASIDE = 1 / 4
"""Of a budget, for the owners' own shares. Less leaves a pipeline beside a flooded one smaller
pieces to work with; more is kept from the flooded one though nobody uses it."""

WAKES = 1 / 4
"""Of what is lent: when so much is free again, owners that were refused look again. Less has them
come for every message that is written; they also look again at each event of their own."""


class Allowance(Protocol):
    """How much one owner may hold."""

    def hold(self, size: int) -> bool:
        """Note that ``size`` bytes are held from now on, and say whether that is allowed. What is
        beyond is not noted: the owner lets it go, or takes no more. Any thread."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A bound that nobody shares."""

    bytes: int

    def hold(self, size: int) -> bool:
        """See ``Allowance``."""
        return size <= self.bytes


NOTHING = Fixed(0)
"""For a mailbox that gets no data."""


class Lender:
    """One budget of the process. Any thread may call each method."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._pool = int(budget_bytes * (1 - SET_ASIDE))
        self._lock = threading.Lock()
        self._accounts: set[Account] = set()
        self._refused: set[Account] = set()
        self._lent = 0
        self._even_share = 0.0

    def account(
        self, pipeline: str, quota: float | None = None, wake: Callable[[], None] | None = None
    ) -> Account:
        """For a new owner, which is part of a pipeline. ``quota``: how much of the budget it may
        hold at most; None: it may borrow all that is lent. ``wake`` is called after a refusal, on
        any thread, once there is room again; it must only leave a note."""
        account = Account(self, pipeline, quota, wake)
        with self._lock:
            self._accounts.add(account)
            self._share_out()
        return account

    def end(self, pipeline: str) -> None:
        """Take back all that a pipeline's owners have: they have ended."""
        with self._lock:
            gone = {account for account in self._accounts if account.pipeline == pipeline}
            self._accounts -= gone
            self._refused -= gone
            self._lent -= sum(account.lent for account in gone)
            self._share_out()
            woken = self._room_again()
        for wake in woken:
            wake()

    def note(self, account: Account, size: int) -> bool:
        """See ``Account.hold``."""
        with self._lock:
            if account not in self._accounts:
                return size == 0  # a straggler of a pipeline that has ended
            part = self._even_share if account.quota is None else account.quota
            own = int(self._budget * SET_ASIDE * part)
            cap = self._budget if account.quota is None else int(self._budget * account.quota)
            was, free = account.lent, self._pool - self._lent + account.lent
            account.borrow(max(0, min(size - own, cap - own, free)))
            self._lent += account.lent - was
            fits = size <= own + account.lent
            if fits:
                self._refused.discard(account)
            elif account.wake is not None:
                self._refused.add(account)
            woken = self._room_again(account) if account.lent < was else []
        for wake in woken:
            wake()
        return fits

    @property
    def lent_bytes(self) -> int:
        """What owners hold beyond their own shares."""
        with self._lock:
            return self._lent

    def _share_out(self) -> None:
        """Owners without a quota have even shares of what the quotas leave."""
        quotas = [account.quota for account in self._accounts if account.quota is not None]
        others = len(self._accounts) - len(quotas)
        self._even_share = max(0.0, 1 - sum(quotas)) / others if others else 0.0

    def _room_again(self, but: Account | None = None) -> list[Callable[[], None]]:
        """Whom to wake: those that were refused, if enough is free. Not who is looking already."""
        if self._pool - self._lent < self._pool * WAKES:
            return []
        woken = [account for account in self._refused if account is not but]
        self._refused.difference_update(woken)
        return [account.wake for account in woken if account.wake is not None]


class Account:
    """What one owner may hold of a budget."""

    def __init__(
        self,
        lender: Lender,
        pipeline: str,
        quota: float | None,
        wake: Callable[[], None] | None,
    ) -> None:
        self._lender = lender
        self.pipeline, self.quota, self.wake = pipeline, quota, wake
        self.lent = 0

    def hold(self, size: int) -> bool:
        """See ``Allowance``."""
        return self._lender.note(self, size)

    def borrow(self, size: int) -> None:
        """Have so much beyond the own share. Only the lender calls it, under its lock."""
        self.lent = size
