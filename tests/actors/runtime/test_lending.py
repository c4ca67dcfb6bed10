"""What owners of a budget lend each other: never more than there is, never less than their own."""

from __future__ import annotations

import threading

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.runtime.lending import SET_ASIDE, Account, Lender
from actors.runtime.mailbox import DataQueue, Mailbox

BUDGET = 1200


def test_the_only_one_has_the_whole_budget() -> None:
    alone = Lender(BUDGET).account("p")
    assert alone.hold(BUDGET)
    assert not alone.hold(BUDGET + 1)


def test_what_idle_owners_do_not_need_is_lent() -> None:
    """Of three, two of which hold nothing: all but their own shares."""
    lender = Lender(BUDGET)
    busy, *_ = (lender.account(name) for name in "pqr")
    assert busy.hold(1000)
    assert not busy.hold(1001)


def test_beside_five_hundred_idle_ones_a_busy_one_still_has_three_quarters() -> None:
    lender = Lender(BUDGET)
    busy, *_ = (lender.account(str(number)) for number in range(501))
    assert busy.hold(int(BUDGET * (1 - SET_ASIDE)))


def test_nobody_takes_the_own_share_of_another() -> None:
    """It is there at once, though another one has borrowed all that is lent."""
    lender = Lender(BUDGET)
    busy, other, _ = (lender.account(name) for name in "pqr")
    assert busy.hold(1000)
    assert other.hold(100)
    assert not other.hold(101)
    assert busy.hold(1000)


def test_a_quota_is_never_passed_and_what_it_leaves_is_lent() -> None:
    lender = Lender(BUDGET)
    bound, free = lender.account("p", quota=0.5), lender.account("q")
    assert free.hold(900 + 150)
    assert not bound.hold(151)
    assert free.hold(0)
    assert bound.hold(600)
    assert not bound.hold(601)


def test_who_was_refused_is_woken_once_when_there_is_room_again() -> None:
    """Not for the first byte, and not while it is looking itself."""
    lender, woken = Lender(BUDGET), list[str]()
    one = lender.account("p", wake=lambda: woken.append("p"))
    two = lender.account("q", wake=lambda: woken.append("q"))
    assert one.hold(150 + 900)
    assert not two.hold(400)
    one.hold(150 + 900 - 1)
    assert woken == []
    one.hold(150)
    assert woken == ["q"]
    one.hold(0)
    assert woken == ["q"]
    assert two.hold(400)


def test_what_an_ended_pipeline_had_is_lent_again() -> None:
    """Also its own share; and what a straggler of it still says counts no more."""
    lender, woken = Lender(BUDGET), list[str]()
    gone = lender.account("p")
    left = lender.account("q", wake=lambda: woken.append("q"))
    assert gone.hold(150 + 900)
    assert not left.hold(BUDGET)
    lender.end("p")
    assert woken == ["q"]
    assert not gone.hold(BUDGET)
    assert left.hold(BUDGET)
    assert lender.lent_bytes == BUDGET * (1 - SET_ASIDE)


def test_a_mailbox_borrows_what_the_others_leave() -> None:
    """One that was refused finds room where the other has taken what waited."""
    lender = Lender(BUDGET)
    busy, other = (Mailbox(DataQueue(lender.account(name))) for name in "pq")
    told: list[str] = []
    for number in range(10):
        assert busy.offer(number, 100, lambda: told.append("busy"))
    assert not busy.offer("more", 100, lambda: told.append("busy"))
    assert other.offer("its own", 150, lambda: told.append("other"))
    assert not other.offer("more", 51, lambda: told.append("other"))
    for _ in range(5):
        busy.get()
    assert told == ["busy"]
    assert other.offer("borrowed", 500, lambda: None)
    assert lender.lent_bytes == (500 - 150) + (650 - 150)


def test_many_threads_never_hold_more_than_the_budget() -> None:
    """Each takes what it can, and gives it back; at the end nothing is lent."""
    lender, together = Lender(BUDGET), list[int]()
    accounts = [lender.account(str(number)) for number in range(4)]
    begin = threading.Barrier(len(accounts))

    def work(account: Account) -> None:
        begin.wait()
        for size in range(1000):
            if account.hold(size):
                together.append(lender.lent_bytes)
            account.hold(0)

    threads = [threading.Thread(target=work, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert max(together) <= BUDGET * (1 - SET_ASIDE)
    assert lender.lent_bytes == 0


class LendingMachine(RuleBasedStateMachine):
    """Owners of three pipelines, one with a quota; they hold what they may."""

    def __init__(self) -> None:
        super().__init__()
        self.lender = Lender(BUDGET)
        self.held: dict[Account, int] = {}
        self.waits: dict[Account, int] = {}
        """What they were refused, until they are woken."""

    @rule(name=st.sampled_from("pqr"))
    def begin(self, name: str) -> None:
        if sum(account.pipeline == name for account in self.held) < 2:
            quota = 0.2 if name == "r" else None
            account = self.lender.account(name, quota, lambda: self.waits.pop(account, None))
            self.held[account] = 0
            self.let_go()

    def let_go(self) -> None:
        """Somebody began: the others' own shares are smaller, and they notice."""
        for account, size in self.held.items():
            if not account.hold(size):
                self.held[account] = 0
                account.hold(0)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), size=st.integers(0, BUDGET))
    def hold(self, data: st.DataObject, size: int) -> None:
        account = data.draw(st.sampled_from(sorted(self.held, key=lambda a: a.pipeline)))
        if account.hold(size):
            self.held[account] = size
            self.waits.pop(account, None)
        else:
            account.hold(self.held[account])
            self.waits[account] = size

    @rule(name=st.sampled_from("pqr"))
    def end(self, name: str) -> None:
        self.lender.end(name)
        self.held = {a: size for a, size in self.held.items() if a.pipeline != name}
        self.waits = {a: size for a, size in self.waits.items() if a.pipeline != name}

    @invariant()
    def together_never_more_than_the_budget(self) -> None:
        assert sum(self.held.values()) <= BUDGET

    @invariant()
    def the_own_share_is_always_there(self) -> None:
        free = [account for account in self.held if account.quota is None]
        fixed = sum(account.quota or 0.0 for account in self.held)
        for account in free:
            own = int(BUDGET * SET_ASIDE * ((1 - fixed) / len(free)))
            was = self.held[account]
            assert account.hold(max(own, was))
            account.hold(was)


TestLending = LendingMachine.TestCase
