"""Whose attempt a branch is, told by its name, and whether that owner may still be at work.

A write's branch is left behind when its process dies in the middle. Whoever opens the table next
reads from the name which run made the branch, where and when. The rule is in decision 6.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

BRANCH_PREFIX = "binlogd-"
_NAME = re.compile(
    rf"{BRANCH_PREFIX}(?P<state>[0-9a-f]{{12}})-(?P<place>[0-9a-f]{{12}})"
    r"-(?P<pid>\d+)-(?P<started>\d+)-(?P<created>\d+)-[0-9a-f]{8}"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """One run of a daemon.

    ``state`` is its state directory's id, 12 hexadecimal digits; ``place`` where its process id
    means something (one boot of one machine, one container); ``started`` in clock ticks since
    that boot tells it from a later process of the same id.
    """

    state: str
    place: str
    pid: int
    started: int

    def branch(self, now_s: float) -> str:
        """A new name for the branch of one attempt made now (seconds since the epoch)."""
        parts = (self.state, self.place, self.pid, self.started, int(now_s), uuid4().hex[:8])
        return BRANCH_PREFIX + "-".join(map(str, parts))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a branch's name says: its owner, and when it was made by the owner's clock."""

    owner: Owner
    created_s: int


def this_process(state: str) -> Owner:
    """The owner that this process is. ``state`` is the id of the directory that it has locked."""
    pid = os.getpid()
    return Owner(state, _place(), pid, process_start(pid) or 0)


def anonymous() -> Owner:
    """An owner without a state directory: nobody can claim later that its attempts are dead."""
    return this_process(uuid4().hex[:12])


def attempt_of(branch: str) -> Attempt | None:
    """What the name says, None where it is not an attempt's."""
    if (found := _NAME.fullmatch(branch)) is None:
        return None
    owner = Owner(found["state"], found["place"], int(found["pid"]), int(found["started"]))
    return Attempt(owner, int(found["created"]))


def is_dead(attempt: Attempt, me: Owner, now_s: float, foreign_age_s: float) -> bool:
    """Whether the attempt's run has ended for sure, or is so old that nobody waits for it.

    Where process ids are comparable they decide. A run of our own state directory in another
    place has ended, since we hold the directory's lock. Of all others only the age is known.
    """
    owner = attempt.owner
    if owner == me:
        return False
    if owner.place == me.place:
        return process_start(owner.pid) != owner.started
    return owner.state == me.state or now_s - attempt.created_s > foreign_age_s


def process_start(pid: int) -> int | None:
    """When a process of this place began, in clock ticks since boot; None: there is no such."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses and may hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _place() -> str:
    """This boot of this machine and this namespace of process ids, as 12 hexadecimal digits.

    Where the system doesn't tell, something that no other process has: its attempts are foreign
    to everybody, so that only their age counts.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        place = f"{boot} {os.readlink('/proc/self/ns/pid')} {socket.gethostname()}"
    except OSError:
        place = uuid4().hex
    return sha256(place.encode()).hexdigest()[:12]
