"""State machine of one target: while it is open, at most one write beside one staging.

Only its methods change it, and a state that is not allowed can't be expressed. A write and the
staging of a file behind it overlap. A write that is in flight outlives the beginning of a
quarantine: its end is still to come, and before that no release may begin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from actors.contract import messages as msg
from actors.target.pending import Closing


class Phase(Enum):
    """A target's life in one word, as people are shown it."""

    OPENING = "opening"
    """Its marks are not known yet: nothing may be written."""
    READY = "ready"
    WRITING = "writing"
    """A write is in flight, or waits for its next attempt: there is one at a time."""
    STAGING = "staging"
    """A closed batch is being staged, or could not be yet."""
    QUARANTINED = "quarantined"
    """The sink refuses it: its messages are spilled until it is released."""
    STOPPED = "stopped"
    """A data error: nothing more is applied, so the frontier stays below it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The target's state is requested, or with ``retry_at`` will be again: the sink was away."""

    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A batch with a writer, or, with ``retry_at``, between two attempts: no writer has it then."""

    batch: msg.WriteBatch
    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """What is closed is being staged, or, with ``retry_at``, will be: the disk did not take it."""

    closing: Closing
    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """Its marks are known."""

    write: Write | None = None
    staging: Staging | None = None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """``flying``: an earlier write that has not ended yet. ``asked``: a request to open it has no
    answer yet."""

    flying: msg.WriteBatch | None = None
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """It takes nothing any more."""


State = Opening | Open | Quarantined | Stopped


class NotAllowed(Exception):
    """A step that a target can't take from where it stands: a mistake in the rule."""


class Life:
    """One target's. Each method but the questions is a step of the machine."""

    __slots__ = ("_state", "attempts", "phase", "races", "stage_attempts")

    _state: State

    def __init__(self, *, quarantined: bool = False) -> None:
        """Its state is requested, unless an earlier run left it ``quarantined``."""
        self.phase = Phase.OPENING
        self._become(Quarantined() if quarantined else Opening())
        self.attempts = 0
        """Of the write or the opening, which is why they are one figure."""
        self.races = 0
        """How often in a row another member published first."""
        self.stage_attempts = 0

    # --- questions

    @property
    def write(self) -> msg.WriteBatch | None:
        """The write that has not ended."""
        match self._state:
            case Open(Write(batch)) | Quarantined(batch, _):
                return batch
        return None

    @property
    def waiting(self) -> msg.WriteBatch | None:
        """The write that is between two attempts."""
        match self._state:
            case Open(Write(batch, at)) if at is not None:
                return batch
        return None

    @property
    def flying(self) -> msg.WriteBatch | None:
        """The write that a writer has."""
        return None if self.waiting is not None else self.write

    @property
    def releasable(self) -> bool:
        """Whether nothing from before the quarantine is still to come."""
        return self._state == Quarantined()

    @property
    def retry_at(self) -> float | None:
        """When the write or the opening is tried again. None: not waiting."""
        match self._state:
            case Opening(at) | Open(Write(_, at)):
                return at
        return None

    @property
    def closing(self) -> Closing | None:
        """What is closed and not staged."""
        match self._state:
            case Open(_, Staging(closing)):
                return closing
        return None

    @property
    def restage_at(self) -> float | None:
        """When staging is tried again. None: not waiting."""
        match self._state:
            case Open(_, Staging(_, at)):
                return at
        return None

    # --- the opening

    def look(self) -> None:
        """Its state is requested, for the first time or again, while nothing is on its way."""
        if self._state not in (Open(), Quarantined()):
            raise NotAllowed(f"an opening while {self._state}")
        self._become(Opening())

    def looked(self) -> bool:
        """The answer came; whether it was waited for."""
        match self._state:
            case Opening():
                self.attempts = 0
                self._become(Open())
                return True
            case Quarantined(flying, True):
                self.attempts = 0
                self._become(Quarantined(flying))
        return False

    # --- staging

    def stage(self, closing: Closing) -> None:
        """What is closed is staged."""
        self._become(replace(self._open(closed=False), staging=Staging(closing)))

    def stage_failed(self) -> int:
        """The disk did not take it; how often so far."""
        self.stage_attempts += 1
        return self.stage_attempts

    def schedule_restage(self, at: float) -> None:
        """It is to be staged again then; None of it, where all was taken away meanwhile."""
        self._restage(at)

    def stage_now(self) -> None:
        """It is tried again."""
        self._restage(None)

    def narrow(self, closing: Closing | None) -> None:
        """What is left of it when partitions went away."""
        match self._state:
            case Open(_, Staging() as staging):
                left = None if closing is None else replace(staging, closing=closing)
                self._become(replace(self._state, staging=left))

    def staged(self) -> None:
        """The file is there, or nothing of it is needed any more."""
        self.stage_attempts = 0
        self._become(replace(self._open(), staging=None))

    # --- the write

    def submit(self, batch: msg.WriteBatch) -> None:
        """A batch goes to the writers."""
        open_ = self._open(closed=False)
        if open_.write is not None:
            raise NotAllowed(f"a second write beside {open_.write}")
        self.attempts = 1
        self._become(Open(Write(batch)))

    def failed(self) -> int:
        """A write, or an opening, did not happen; the number of the next attempt."""
        self.attempts += 1
        return self.attempts

    def lost_race(self) -> int:
        """Another member published first; how often so far."""
        self.races += 1
        return self.races

    def schedule_retry(self, at: float) -> None:
        """Write or opening is to be tried again then. Where neither is waited for any more there is
        nothing to be tried."""
        self._set_retry(at)

    def retry_now(self) -> None:
        """It is tried again."""
        self._set_retry(None)

    def ended(self) -> None:
        """The write, or in quarantine the opening, is over, however it ended."""
        match self._state:
            case Open():
                self._become(replace(self._state, write=None))
            case Quarantined():
                self._become(Quarantined())

    def calm(self) -> None:
        """What failed before is no reason to wait longer the next time."""
        self.attempts = self.races = 0

    # --- its ends

    def quarantine(self) -> None:
        """Nothing more is written until it is released. A write that waits for its next attempt is
        dropped: it would never end."""
        match self._state:
            case Opening(None) | Quarantined(_, True):
                self._become(Quarantined(None, asked=True))
            case _:
                self._become(Quarantined(self.flying))

    def stop(self) -> None:
        """Nothing more is taken."""
        self._become(Stopped())

    # --- inside

    def _open(self, *, closed: bool = True) -> Open:
        """The state, which must be open; without ``closed`` nothing may be closed."""
        state = self._state
        if not isinstance(state, Open) or (state.staging is not None and not closed):
            raise NotAllowed(f"staging or a write while {state}")
        return state

    def _restage(self, at: float | None) -> None:
        match self._state:
            case Open(_, Staging() as staging):
                self._become(replace(self._state, staging=replace(staging, retry_at=at)))

    def _set_retry(self, at: float | None) -> None:
        match self._state:
            case Opening():
                self._become(Opening(at))
            case Open(Write() as write):
                self._become(replace(self._state, write=replace(write, retry_at=at)))

    def _become(self, state: State) -> None:
        self._state = state
        match state:
            case Opening():
                self.phase = Phase.OPENING
            case Open(_, Staging()):
                self.phase = Phase.STAGING
            case Open(Write()):
                self.phase = Phase.WRITING
            case Open():
                self.phase = Phase.READY
            case Quarantined():
                self.phase = Phase.QUARANTINED
            case Stopped():
                self.phase = Phase.STOPPED
