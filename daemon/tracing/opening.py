"""Opens the traces where the configuration asks for them. Without that no package is imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from actors.contract.addresses import Address
from actors.runtime.shell import Perform
from daemon.config.config import Config
from settings.version import VERSION

PACKAGES = "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"


class Tracing:
    """The traces of a run; none where none are asked for. The main thread makes and closes it."""

    def __init__(self, config: Config, run: str) -> None:
        self.around: Callable[[Address, Perform], Perform] | None = None
        """What stands between actors and their effects."""
        self._closes: tuple[Callable[[], None], ...] = ()
        if not config.tracing.endpoint:
            return
        from daemon.tracing.batches import BatchTraces
        from daemon.tracing.effects import traced
        from daemon.tracing.exporting import Exporting

        exporting = Exporting(config.tracing, run, VERSION)
        traces = BatchTraces(exporting.tracer, config.redactor.text)
        self.around = traced(traces)
        self._closes = (lambda: traces.close(time.time_ns())), exporting.close

    def close(self) -> None:
        """The actors have ended: send what is left."""
        for close in self._closes:
            close()


def missing_packages(config: Config) -> Iterator[str]:
    """One line where traces are asked for and their packages are not here."""
    if not config.tracing.endpoint:
        return
    try:
        import daemon.tracing.exporting  # noqa: F401
    except ImportError:
        yield f"tracing.endpoint: needs {PACKAGES}: pip install 'binlogd[tracing]'"
