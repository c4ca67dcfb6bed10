"""What a processor says of its targets' counts, and hears of them. It is told nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.contract.writes import TargetState
from actors.target.buffer import TargetBuffer


class CountsTold:
    """Tells who folds counts what targets' marks carry. ``to`` None: nothing is counted."""

    def __init__(self, to: Address | None) -> None:
        self._to = to

    def opened(self, buffer: TargetBuffer, state: TargetState) -> list[fx.TargetEffect]:
        """A target's marks were read: of all lanes."""
        if self._to is None or not state.counts:
            return []
        return [fx.Tell(self._to, msg.CountsHeld(buffer.route.name, state.counts))]

    def written(self, buffer: TargetBuffer, written: msg.Written) -> list[fx.TargetEffect]:
        """A write is published: of its own lanes, for of others somebody else may know more."""
        if self._to is None or written.state is None:
            return []
        counts = written.state.counts.items()
        own = {source: each for source, each in counts if source in written.epochs}
        return [fx.Tell(self._to, msg.CountsHeld(buffer.route.name, own))] if own else []

    def folded(
        self, buffers: Mapping[str, TargetBuffer], said: msg.CountsFolded
    ) -> list[fx.TargetEffect]:
        """The table of counts has these. Of a target that has no buffer yet they are heard again
        once its marks are read."""
        if (buffer := buffers.get(str(said.target))) is not None:
            buffer.counts_folded(said.counts)
        return []
