"""A function of the user's as a configured sink. It needs neither Java nor Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from actors.contract.ports import ResettableSink
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.routes.routing import Route
from settings.rotation import SecretSettings
from sparkwriter.function.calls import StartHandler
from sparkwriter.function.process import HandlerProcess
from sparkwriter.function.section import PythonSection
from sparkwriter.function.store import HandlerStore
from sparkwriter.kit.marks_table.writer import LedgeredWriter
from sparkwriter.kit.port import Sessions, Sink

_SINGLE_WRITER = (
    "the marks of a python sink are in this daemon's folder, so that a second one does not know"
    " them: run one daemon, or give each its own tables"
)


class PythonSink(Sink):
    """Nothing can be tried without importing the module, which its own process does."""

    def __init__(self, name: str, section: PythonSection) -> None:
        self._name = name
        self._section = section

    @property
    def single_writer(self) -> str | None:
        """The ledger is one daemon's."""
        return _SINGLE_WRITER

    def keeps_names(self) -> str | None:
        """Whether the module has a function for statements, or can't be imported."""
        process = self._process()
        try:
            if process.started().statements:
                return None
        except (SinkUnavailable, TargetRefused) as error:
            return str(error)
        finally:
            process.close()
        return (
            f"{self._section.entry} has no function `statement`, by which the new table would take "
            "the old one's name (rename)"
        )

    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Import the module once, so that a start with a broken one fails."""
        for problem in self.try_out(sessions, ()):
            raise SinkUnavailable(problem)

    def try_out(self, sessions: Sessions | None, routes: Iterable[Route]) -> Iterator[str]:
        """Import the module in a process of its own, and look for the function."""
        process = self._process()
        try:
            process.started()
        except (SinkUnavailable, TargetRefused) as error:
            yield f"sink {self._name}: {error}"
        finally:
            process.close()

    def writer(self) -> ResettableSink:
        """One process, started with its first call."""
        return LedgeredWriter(HandlerStore(self._process(), self._section.state))

    def _process(self) -> HandlerProcess:
        section = self._section
        start = StartHandler(section.entry, tuple(section.path), section.settings_)
        return HandlerProcess(start, section.write_timeout_s, section.memory_bytes)


def make_sink(name: str, section: PythonSection, config: SecretSettings) -> Sink:
    """See ``sparkwriter.sections``."""
    return PythonSink(name, section)
