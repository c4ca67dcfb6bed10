"""Dead letters: records that can't be applied are stored one by one, then count as done.

Each pipeline has one actor for them, so that neither the fetcher nor a processor waits for the
store. Two ways lead here, and in both the record is open until the store has confirmed it:

* a message that can't even be looked at belongs to no target: the fetcher dispatches it in its
  partition's lane ``DEAD_LETTERS``, which holds the frontier;
* a message that can't be decoded belongs to a target: what came before it is written, and nothing
  of what follows is closed before the store has it. With a lane alone the write of what
  follows would move the target's mark past the record, and after a crash it would be dropped
  as a replay: neither applied nor stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.figures import DeadLetterFigures, Figures
from actors.runtime.backoff import RETRY_BASE_S, RETRY_MAX_S, Waits
from actors.runtime.mailbox import Tick

WINDOW_S = 3600.0
"""What the bound counts over."""

LOGGED_EVERY_S = 60.0
LOGGED_AT_ONCE = 20
"""Letters that the log names one by one each minute; the rest are counted."""


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    """``per_hour``: more than that and the pipeline stops, for then it is not the records that
    are wrong but an option of the format, and all would go here. ``retry_for_s``: a store that
    has taken nothing for so long stops it, too. ``count_every_s``: the least time between two
    counts of the open letters, which are made where somebody asks for figures."""

    per_hour: int
    retry_for_s: float
    retry_base_s: float = RETRY_BASE_S
    retry_max_s: float = RETRY_MAX_S
    count_every_s: float = 1.0


class DeadLetterLogic:
    """Stores one letter after another, in the order they came."""

    def __init__(
        self, pipeline: str, settings: DeadLetterSettings, recent_s: Iterable[float] = ()
    ) -> None:
        """``recent_s``: how old, in seconds, those are that earlier runs stored in the last hour.

        They count. Else a daemon that is restarted often would take any number.
        """
        self._pipeline = pipeline
        self._settings = settings
        self._committer = Address(pipeline, "committer")
        self._supervisor = Address(pipeline, "supervisor")
        self._waiting: deque[msg.DeadLetter] = deque()
        self._earlier = sorted(recent_s, reverse=True)
        self._recent: deque[float] = deque()
        self._refused: str | None = None
        self._attempts = 0
        self._failing_since: float | None = None
        self._stored = 0
        self._open: int | None = None
        self._count_at: float | None = None
        self._not_counted: str | None = None
        self._error: str | None = None
        self._unlogged = 0
        self._logged_at: deque[float] = deque()

    def handle(self, message: object, now: float) -> list[fx.DeadLetterEffect]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case msg.DeadLetter():
                return self._take(message, now)
            case msg.DeadLetterKept(letter):
                return self._kept(letter, now)
            case msg.DeadLetterNotKept(reason, log_away):
                return self._not_kept(reason, log_away, now)
            case Tick():
                return self._next()
            case msg.DeadLettersCounted(count):
                self._open, self._not_counted = count, None
                return []
            case msg.DeadLettersNotCounted(reason):
                return self._count_failed(reason)
            case Figures():
                return self._figures(now)
            case _:
                raise TypeError(f"the dead letters do not know {message!r}")

    def _take(self, letter: msg.DeadLetter, now: float) -> list[fx.DeadLetterEffect]:
        self._recent.extend(now - age for age in self._earlier)
        self._earlier = []
        while self._recent and self._recent[0] <= now - WINDOW_S:
            self._recent.popleft()
        bound = self._settings.per_hour
        if self._refused is None and max(len(self._recent), len(self._waiting)) >= bound:
            self._refused = (
                f"too many bad records: more than {bound} within an hour "
                f"(max_bad_records_per_hour), the last is {letter.place}: {letter.reason}"
            )
        if self._refused is not None:
            return self._refuse(letter, self._refused)
        self._recent.append(now)
        self._waiting.append(letter)
        return self._next() if len(self._waiting) == 1 else []

    def _refuse(self, letter: msg.DeadLetter, reason: str) -> list[fx.DeadLetterEffect]:
        """It stays open, and so does all behind it: nothing is lost, the pipeline stops."""
        out: list[fx.DeadLetterEffect] = []
        if letter.reply_to is not None:
            assert letter.target is not None
            refused = msg.DeadLetterRefused(letter.target, reason)
            out.append(fx.Tell(letter.reply_to, refused))
        return [*out, fx.Tell(self._supervisor, msg.PipelineFailed(self._pipeline, reason))]

    def _next(self) -> list[fx.DeadLetterEffect]:
        return [fx.KeepDeadLetter(self._waiting[0])] if self._waiting else []

    def _kept(self, letter: msg.DeadLetter, now: float) -> list[fx.DeadLetterEffect]:
        self._waiting.popleft()
        self._stored += 1
        if self._open is not None:
            self._open += 1
        self._count_at = None  # one that was stored before, then a crash, is still one letter
        self._attempts, self._error, self._failing_since = 0, None, None
        done = msg.DeadLettered(letter.source, letter.epoch, letter.offset, letter.target)
        to = letter.reply_to or self._committer
        return [*self._log(letter, now), fx.Tell(to, done), *self._next()]

    def _not_kept(self, reason: str, log_away: bool, now: float) -> list[fx.DeadLetterEffect]:
        """Try again, for a while. A broker that does not give the record is not the store's fault:
        all the pipeline waits for it, and so does this."""
        self._error = reason
        self._attempts += 1
        settings = self._settings
        if log_away:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
        if self._failing_since is not None and now - self._failing_since >= settings.retry_for_s:
            return self._give_up(reason, now - self._failing_since)
        wait = Waits(settings.retry_base_s, settings.retry_max_s).after(self._attempts)
        fields = {"reason": reason, "attempt": self._attempts, "retry_in_s": round(wait, 3)}
        return [fx.Log("warning", "dead_letter_not_stored", fields), fx.WakeAt(now + wait)]

    def _give_up(self, reason: str, after_s: float) -> list[fx.DeadLetterEffect]:
        """What waits stays open: it is read, and stored, again after the restart."""
        first = self._waiting[0]
        self._refused = (
            f"the dead-letter store has taken nothing for {after_s:.0f} s "
            f"(dead_letter_retry_s): {reason}; {first.place} is not stored: {first.reason}"
        )
        refused = [each for letter in self._waiting for each in self._refuse(letter, self._refused)]
        self._waiting.clear()
        return list(dict.fromkeys(refused))  # the supervisor hears it once

    def _figures(self, now: float) -> list[fx.DeadLetterEffect]:
        """Answer with the last count, then count again: others replay and discard letters."""
        waiting = len(self._waiting)
        reply = fx.Reply(DeadLetterFigures(self._stored, waiting, self._error, self._open))
        if self._count_at is not None and now < self._count_at:
            return [reply]
        self._count_at = now + self._settings.count_every_s
        return [reply, fx.CountDeadLetters()]

    def _count_failed(self, reason: str) -> list[fx.DeadLetterEffect]:
        """The last count stands. Each new reason is logged once."""
        if reason == self._not_counted:
            return []
        self._not_counted = reason
        return [fx.Log("warning", "dead_letters_not_counted", {"reason": reason})]

    def _log(self, letter: msg.DeadLetter, now: float) -> list[fx.DeadLetterEffect]:
        while self._logged_at and self._logged_at[0] <= now - LOGGED_EVERY_S:
            self._logged_at.popleft()
        if len(self._logged_at) >= LOGGED_AT_ONCE:
            self._unlogged += 1
            return []
        self._logged_at.append(now)
        fields = {
            "place": letter.place,
            "target": None if letter.target is None else str(letter.target),
            "reason": letter.reason,
            "unlogged_before": self._unlogged,
        }
        self._unlogged = 0
        return [fx.Log("warning", "dead_letter", fields)]
