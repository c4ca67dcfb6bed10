"""``binlogd collector …``: what people have done to collectors while the daemon runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from collector.collector import Collector
from collector.connect.rest import ConnectError
from collector.connector.config import publication_of, slot_name
from collector.figures import CollectorFigures
from collector.topics import data_topics, history_topics
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, Option, Params
from daemon.operations.engine.port import Plan
from daemon.state.control import ControlError
from daemon.state.edits import EditRefused
from databases.base.errors import DatabaseError

_NEEDS = "the running daemon has its worker"


class CollectorParams(Params):
    """Which."""

    name: Annotated[str, Option("As in [collector.NAME].", argument=True, metavar="NAME")]


class RemoveParams(CollectorParams):
    """And what goes with it."""

    topics: Annotated[
        bool, Option("Its topics, too, with all that they hold.", flag="--topics")
    ] = False


class _Simple(Operation[CollectorParams]):
    """Of a collector, at once."""

    params, example, needs_daemon = CollectorParams, "shop", _NEEDS

    def says(self, found: CollectorFigures) -> str:
        """What would be done to one that is so."""
        raise NotImplementedError

    def act(self, collector: Collector) -> None:
        """Do it."""
        raise NotImplementedError

    def plan(self, params: CollectorParams, here: Here) -> Plan:
        """What would be done."""
        found = _chosen(params.name, here).figures()
        line = f"collector {params.name} is {found['state']}: {self.says(found)}"
        return Plan(lines=(line,), document={"collector": params.name, "was": found["state"]})

    def step(self, params: CollectorParams, here: Here) -> Done:
        """Do it."""
        plan, collector = self.plan(params, here), _chosen(params.name, here)
        _asked(lambda: self.act(collector))
        here.say(*plan.lines)
        return Done(plan.document)


class PauseCollector(_Simple):
    """End a collector's task: nothing is read, its position and its slot stay at the source."""

    words, undone_by = "collector pause", "collector resume"

    def says(self, found: CollectorFigures) -> str:
        """See ``_Simple``."""
        return "its task ends, and the source keeps its log from its position on"

    def act(self, collector: Collector) -> None:
        """See ``_Simple``."""
        collector.hands.pause()


class ResumeCollector(_Simple):
    """Have a collector read on from its position."""

    words = "collector resume"

    def says(self, found: CollectorFigures) -> str:
        """See ``_Simple``."""
        if found["state"] == "removed":
            return "it begins at the source's present, and its tables are loaded"
        return "it reads on from its position"

    def act(self, collector: Collector) -> None:
        """See ``_Simple``."""
        collector.hands.resume()


class RestartCollector(_Simple):
    """Have a collector's task begin again at its position, now. A lost position is looked for."""

    words = "collector restart"

    def says(self, found: CollectorFigures) -> str:
        """See ``_Simple``."""
        return "its task begins again at its position"

    def act(self, collector: Collector) -> None:
        """See ``_Simple``."""
        collector.hands.restart()


class ResetCollector(_Simple):
    """Have a collector begin at the source's present, and load its tables. Nobody reads what was
    between its position and the present."""

    words, loses = "collector reset", True

    def says(self, found: CollectorFigures) -> str:
        """See ``_Simple``."""
        tables = ", ".join(found["tables"])
        return f"it begins at the source's present, then these are loaded: {tables}"

    def act(self, collector: Collector) -> None:
        """See ``_Simple``."""
        collector.hands.reset()


class RemoveCollector(Operation[RemoveParams]):
    """Remove a collector's connector, its position and its slot. Its section can go then.

    A topic that a pipeline reads stays, unless --topics says otherwise.
    """

    words, params, example = "collector remove", RemoveParams, "shop --dry-run"
    loses, needs_daemon, undone_by = True, _NEEDS, "collector resume"

    def plan(self, params: RemoveParams, here: Here) -> Plan:
        """What would go, and what would stay."""
        collector = _chosen(params.name, here)
        wiring = collector.hands.wiring
        lines = [f"collector {params.name}: its connector and its position go"]
        notes = []
        if wiring.database is not None and wiring.database.address.kind == "postgresql":
            lines.append(f"the slot {slot_name(wiring.name, wiring.section)} goes")
            if wiring.database.publication is None:
                name = publication_of(wiring.name, wiring.section, None)
                notes.append(
                    f'the publication stays; if nobody else reads it: DROP PUBLICATION "{name}"'
                )
        topics = [*data_topics(wiring), *history_topics(wiring)]
        stay = "go with all that they hold" if params.topics else "stay"
        lines.append(f"the topics {', '.join(topics)} {stay}")
        document = {"collector": params.name, "topics": topics if params.topics else []}
        return Plan((), tuple(lines), document, notes=tuple(notes))

    def step(self, params: RemoveParams, here: Here) -> Done:
        """Remove it."""
        plan, collector = self.plan(params, here), _chosen(params.name, here)
        gone: list[str] = []
        _asked(lambda: gone.extend(collector.hands.remove(params.topics)))
        here.say(*plan.lines)
        here.note(*plan.notes)
        return Done({**plan.document, "topics": gone})


def _chosen(name: str, here: Here) -> Collector:
    """Raises EditRefused where there is none of that name."""
    collectors = here.daemon.lent.collectors
    found = None if collectors is None else collectors.of(name)
    if found is None:
        known = ", ".join([] if collectors is None else collectors.names) or "none"
        raise EditRefused(f"there is no collector {name!r}; have: {known}")
    return found


def _asked(act: Callable[[], None]) -> None:
    """Raises ControlError where it can't be done now."""
    try:
        act()
    except (ConnectError, DatabaseError, OSError) as error:
        raise ControlError(str(error)) from error
