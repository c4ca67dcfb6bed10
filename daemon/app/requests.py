"""Hands requests to the writers of their sink, fairly, and counts the open ones of each pipeline.

Each sink has writers of its own, so that one that is slow or away holds up no other's. A writer
that is free takes the request of the pipeline that has the fewest with writers, and of those the
one that was served longest ago. A pipeline's quota bounds how many it has with them at a time.

A write outlives the actors that requested it. Before a pipeline's actors are replaced, the edit
waits here. Otherwise the new actors would receive the answers to the old ones.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.messages import (
    OpenTarget,
    SayThrough,
    TagVersion,
    WriteBatch,
    WriteTogether,
)
from actors.runtime.shell import Directory, Endpoint
from changes.model.model import TargetName

# What waits for a sink's writers, of one pipeline: in its order, but writes pass openings.

WRITES = WriteBatch, WriteTogether
Request = OpenTarget | WriteBatch | WriteTogether | TagVersion | SayThrough


def _targets(request: Request) -> list[TargetName]:
    """Each has an answer."""
    match request:
        case WriteTogether(writes):
            return [write.batch.target for write in writes]
        case WriteBatch(batch):
            return [batch.target]
    return [request.target]


class InTurns:
    """Requests in their order, but a write has one opening before it, not a thousand.

    After a restart all tables with changes are opened at once. In plain order the first write, and
    the frontier with it, would wait until the last of them is open.
    """

    def __init__(self) -> None:
        self._items: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, request: Request) -> None:
        """A write goes behind the last write and one opening, where openings alone follow."""
        if not isinstance(request, WRITES):
            self._items.append(request)
            return
        writes = (at for at, one in enumerate(self._items) if isinstance(one, WRITES))
        self._items.insert(max(writes, default=-1) + 2, request)

    def take(self) -> Request:
        """The next one."""
        return self._items.popleft()


@dataclass(slots=True)
class _Sink:
    """What waits for one sink's writers, and what they are working on, by pipeline. The pipeline
    that was served last is the last one of ``waiting``."""

    queue: Endpoint
    waiting: dict[str, InTurns] = field(default_factory=dict)
    in_hand: Counter[str] = field(default_factory=Counter)
    together: dict[TargetName, set[TargetName]] = field(default_factory=dict)
    """Of each target that a writer has together with others, those that are not answered yet."""

    def answered(self, targets: Sequence[TargetName]) -> int:
        """How many writers that leaves free."""
        free = 0
        for target in targets:
            others = self.together.pop(target, {target})
            others.discard(target)
            free += not others
        return free


class Requests:
    """The writers' queues, by sink, as one endpoint. Any thread."""

    def __init__(
        self,
        queues: Mapping[str, Endpoint],
        writers: int,
        quota: Callable[[str], int | None] = lambda pipeline: None,
    ) -> None:
        """``writers``: of each sink. ``quota``: how many of them a pipeline may have at a time."""
        self._sinks = {name: _Sink(queue) for name, queue in queues.items()}
        self._writers = writers
        self._quota = quota
        self._changed = threading.Condition()
        self._open: Counter[str] = Counter()

    def tell(self, message: object) -> None:
        """Queue a request."""
        match message:
            case msg.OpenTarget(target) | msg.TagVersion(target) | msg.SayThrough(target):
                sink = self._sinks[target.sink]
            case msg.WriteBatch(batch) | msg.WriteTogether((msg.WriteBatch(batch), *_)):
                sink = self._sinks[batch.target.sink]
            case _:
                raise TypeError(f"a writer does not know {message!r}")
        pipeline = message.reply_to.pipeline
        with self._changed:
            self._open[pipeline] += len(_targets(message))
            sink.waiting.setdefault(pipeline, InTurns()).add(message)
            self._hand_out(sink)

    def answered(self, pipeline: str, targets: Sequence[TargetName]) -> None:
        """A writer has sent the processor its answer. Each target of a request has exactly one."""
        with self._changed:
            sink = self._sinks[targets[0].sink]
            self._open[pipeline] -= len(targets)
            sink.in_hand[pipeline] -= sink.answered(targets)
            self._hand_out(sink)
            self._changed.notify_all()

    def wait(self, pipeline: str, timeout_s: float) -> int:
        """Wait until no request of the pipeline is open. Returns how many still are."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._open[pipeline] > 0 and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._open[pipeline]

    def _hand_out(self, sink: _Sink) -> None:
        while sink.in_hand.total() < self._writers:
            may = [name for name in sink.waiting if self._may(sink, name)]
            if not may:
                return
            name = min(may, key=lambda name: sink.in_hand[name])  # the first one of those
            waiting = sink.waiting.pop(name)
            request = waiting.take()
            if len(waiting):
                sink.waiting[name] = waiting
            sink.in_hand[name] += 1
            if len(targets := _targets(request)) > 1:
                others = set(targets)
                sink.together |= ((target, others) for target in targets)
            sink.queue.tell(request)

    def _may(self, sink: _Sink, pipeline: str) -> bool:
        quota = self._quota(pipeline)
        return quota is None or sink.in_hand[pipeline] < quota


class WritersDirectory(Directory):
    """The writers' directory: a message to who asked counts as the answer to the request."""

    def __init__(self, whole: Directory, requests: Requests) -> None:
        super().__init__()
        self._whole = whole
        self._requests = requests

    def tell(self, address: Address, message: object) -> None:
        """Deliver the message before the count falls: a waiting edit then finds it delivered."""
        self._whole.tell(address, message)
        if isinstance(message, msg.NotTogether):
            targets = [write.batch.target for write in message.writes]
            self._requests.answered(address.pipeline, targets)
        elif address.role != "committer":  # it hears of writes as well
            assert isinstance(message, msg.Opened | msg.Written | msg.Tagged | msg.Failed)
            self._requests.answered(address.pipeline, [message.target])
