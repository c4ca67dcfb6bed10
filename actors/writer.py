"""The writer's rule: carry out one request for one target, report how it ended.

Writers form a pool on one queue, so a slow target holds up no other while a writer is free. The
processor sees to it that a target has one write at a time: it submits the next one when it has
heard how the last one ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from actors.contract import effects as fx
from actors.contract import messages as msg

Request = msg.OpenTarget | msg.WriteBatch | msg.WriteTogether | msg.TagVersion | msg.SayThrough


class WriterLogic:
    """One per writer actor. Keeps nothing but the present request."""

    def __init__(self) -> None:
        self._request: Request | None = None

    def handle(self, message: object, now: float) -> list[fx.WriterEffect]:
        """React to one message. ``now`` is not needed: nothing here depends on time."""
        match message:
            case msg.OpenTarget(target, recorded=recorded):
                self._request = message
                return [fx.OpenInSink(target, recorded)]
            case msg.WriteBatch(batch):
                self._request = message
                return [fx.Publish(batch)]
            case msg.WriteTogether() | msg.TagVersion() | msg.SayThrough():
                self._request = message
                return [message]
            case msg.Opened() | msg.Failed() | msg.Tagged() | msg.NotTogether():
                return self._answer(message)
            case msg.Published():
                return self._published((message,))
            case msg.PublishedTogether(published):
                return self._published(published)
            case _:
                raise TypeError(f"a writer does not know {message!r}")

    def _answer(self, answer: object) -> list[fx.WriterEffect]:
        request, self._request = self._request, None
        assert request is not None
        return [fx.Tell(request.reply_to, answer)]

    def _published(self, published: Sequence[msg.Published]) -> list[fx.WriterEffect]:
        request, self._request = self._request, None
        assert isinstance(request, msg.WriteBatch | msg.WriteTogether)
        writes = (request,) if isinstance(request, msg.WriteBatch) else request.writes
        return [out for pair in zip(writes, published, strict=True) for out in _written(*pair)]


def _written(request: msg.WriteBatch, published: msg.Published) -> list[fx.WriterEffect]:
    """Say that a write is published."""
    batch = request.batch
    written = msg.Written(
        target=batch.target,
        epochs=request.epochs,
        through=request.through,
        state=published.state,
        changes=batch.changes,
        seconds=published.seconds,
        at_ms=published.at_ms,
    )
    fields = {
        "target": str(batch.target),
        "rows": batch.rows,
        "changes": batch.changes,
        "seconds": round(published.seconds, 3),
        "version": published.state.version,
    }
    # The committer first: the processor's answer may end the drain, and with it the run.
    to = [each for each in (request.committer, request.reply_to) if each is not None]
    out: list[fx.WriterEffect] = [
        fx.Log("debug", "written", fields),
        *(fx.Tell(each, written) for each in to),
    ]
    if batch.path is not None:
        out.append(fx.RemoveStaged((batch.path,)))
    return out
