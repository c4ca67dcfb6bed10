"""Stands between an actor and its effects, and tells the batches' traces what was done.

All that takes time is an effect, so the rules know nothing of traces, and where nothing is traced
nothing stands here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.runtime.shell import Perform
from daemon.tracing.batches import BatchTraces


def traced(traces: BatchTraces) -> Callable[[Address, Perform], Perform]:
    """Gives what carries out an actor's effects, from what would."""
    kinds = {"fetcher": _polls, "processor": _stages, "writer": _writes, "committer": _commits}

    def around(address: Address, perform: Perform) -> Perform:
        kind = kinds.get(address.role)
        return perform if kind is None else kind(traces, address.pipeline, perform)

    return around


def _polls(traces: BatchTraces, pipeline: str, perform: Perform) -> Perform:
    def carry_out(effect: Any) -> object | None:
        begun = time.time_ns()
        answer = perform(effect)
        if isinstance(answer, msg.Polled) and answer.batches:
            traces.polled(pipeline, answer.batches, begun, time.time_ns())
        return answer

    return carry_out


def _stages(traces: BatchTraces, pipeline: str, perform: Perform) -> Perform:
    def carry_out(effect: Any) -> object | None:
        begun = time.time_ns()
        answer = perform(effect)
        if isinstance(effect, fx.RemoveStaged):
            traces.given_up(effect.paths, time.time_ns())
        elif isinstance(answer, msg.Staged):
            traces.staged(pipeline, effect, answer, begun, time.time_ns())
        return answer

    return carry_out


def _writes(traces: BatchTraces, pipeline: str, perform: Perform) -> Perform:
    def carry_out(effect: Any) -> object | None:
        begun = time.time_ns()
        answer = perform(effect)
        if isinstance(effect, fx.Publish):
            assert isinstance(answer, msg.Published | msg.Failed)
            traces.published(effect.batch, answer, begun, time.time_ns())
        return answer

    return carry_out


def _commits(traces: BatchTraces, pipeline: str, perform: Perform) -> Perform:
    def carry_out(effect: Any) -> object | None:
        begun = time.time_ns()
        answer = perform(effect)
        if isinstance(answer, msg.Saved):
            traces.saved(pipeline, answer.frontiers, begun, time.time_ns())
        return answer

    return carry_out
