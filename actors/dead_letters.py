"""Dead letters: records that can't be applied are stored one by one, then count as done.

One actor a pipeline, so that neither the fetcher nor a processor ever waits for the store. Two
ways lead here, and in both the record is open until the store has confirmed it:

* a message that can't even be looked at belongs to no target: the fetcher dispatches it in a lane
  of its own of its partition, ``DEAD_LETTERS``, which holds the frontier;
* a message that can't be decoded belongs to a target: what came before it is written, and nothing
  of what follows is closed before the store has it. Were it only a lane's matter, the write of
  what follows would move the target's mark past the record, and after a crash it would be dropped
  as a replay: neither applied nor stored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from actors import effects as fx
from actors import messages as msg
from actors.figures import DeadLetterFigures, Figures
from actors.mailbox import Tick
from actors.messages import Address

WINDOW_S = 60.0
"""What the bound counts over."""

LOGGED_A_WINDOW = 20
"""How many are named one by one in the log each minute; the rest as a number."""


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    """``per_minute``: more than that and the pipeline stops, for then it is not the records that
    are wrong but an option of the format, and all would go here."""

    per_minute: int = 100
    retry_base_s: float = 0.5
    retry_max_s: float = 30.0


class DeadLetterLogic:
    """Stores one letter after another, in the order they came."""

    def __init__(self, pipeline: str, settings: DeadLetterSettings) -> None:
        self._pipeline = pipeline
        self._settings = settings
        self._committer = Address(pipeline, "committer")
        self._supervisor = Address(pipeline, "supervisor")
        self._waiting: deque[msg.DeadLetter] = deque()
        self._recent: deque[float] = deque()
        self._refused: str | None = None
        self._attempts = 0
        self._stored = 0
        self._error: str | None = None
        self._unlogged = 0
        self._logged_at: deque[float] = deque()

    def handle(self, message: object, now: float) -> list[object]:
        """React to one message. ``now`` is in monotonic seconds."""
        match message:
            case msg.DeadLetter():
                return self._take(message, now)
            case msg.DeadLetterKept(letter):
                return self._kept(letter, now)
            case msg.DeadLetterNotKept(reason):
                return self._not_kept(reason, now)
            case Tick():
                return self._next()
            case Figures():
                waiting = len(self._waiting)
                return [fx.Reply(DeadLetterFigures(self._stored, waiting, self._error))]
            case _:
                raise TypeError(f"the dead letters do not know {message!r}")

    def _take(self, letter: msg.DeadLetter, now: float) -> list[object]:
        while self._recent and self._recent[0] <= now - WINDOW_S:
            self._recent.popleft()
        bound = self._settings.per_minute
        if self._refused is None and max(len(self._recent), len(self._waiting)) >= bound:
            self._refused = (
                f"too many bad records: more than {bound} within a minute "
                f"(max_dead_letters_per_minute), the last is {letter.place}: {letter.reason}"
            )
        if self._refused is not None:
            return self._refuse(letter, self._refused)
        self._recent.append(now)
        self._waiting.append(letter)
        return self._next() if len(self._waiting) == 1 else []

    def _refuse(self, letter: msg.DeadLetter, reason: str) -> list[object]:
        """It stays open, and so does all behind it: nothing is lost, the pipeline stops."""
        out: list[object] = []
        if letter.reply_to is not None:
            assert letter.target is not None
            refused = msg.DeadLetterRefused(letter.target, reason)
            out.append(fx.Tell(letter.reply_to, refused))
        return [*out, fx.Tell(self._supervisor, msg.PipelineFailed(self._pipeline, reason))]

    def _next(self) -> list[object]:
        return [fx.KeepDeadLetter(self._waiting[0])] if self._waiting else []

    def _kept(self, letter: msg.DeadLetter, now: float) -> list[object]:
        self._waiting.popleft()
        self._stored += 1
        self._attempts, self._error = 0, None
        done = msg.DeadLettered(letter.source, letter.epoch, letter.offset, letter.target)
        to = letter.reply_to or self._committer
        return [*self._log(letter, now), fx.Tell(to, done), *self._next()]

    def _not_kept(self, reason: str, now: float) -> list[object]:
        self._error = reason
        self._attempts += 1
        settings = self._settings
        doubled: float = settings.retry_base_s * 2.0 ** min(self._attempts - 1, 20)
        wait = min(settings.retry_max_s, doubled)
        fields = {"reason": reason, "attempt": self._attempts, "retry_in_s": round(wait, 3)}
        return [fx.Log("warning", "dead_letter_not_stored", fields), fx.WakeAt(now + wait)]

    def _log(self, letter: msg.DeadLetter, now: float) -> list[object]:
        while self._logged_at and self._logged_at[0] <= now - WINDOW_S:
            self._logged_at.popleft()
        if len(self._logged_at) >= LOGGED_A_WINDOW:
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
