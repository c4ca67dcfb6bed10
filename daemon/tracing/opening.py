"""Opens the traces if the configuration has them. Otherwise no package is imported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from actors.contract.addresses import Address
from actors.runtime.shell import Perform
from daemon.config.sections import TracingSection
from settings.version import VERSION

PACKAGES = "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"


class Tracing:
    """The traces of a run; none where none are configured. The main thread makes and closes it."""

    def __init__(self, section: TracingSection, run: str, redact: Callable[[str], str]) -> None:
        self.around: Callable[[Address, Perform], Perform] | None = None
        """What stands between actors and their effects."""
        self._closes: tuple[Callable[[], None], ...] = ()
        if not section.endpoint:
            return
        from daemon.tracing.batches import BatchTraces
        from daemon.tracing.effects import traced
        from daemon.tracing.exporting import Exporting

        exporting = Exporting(section, run, VERSION)
        traces = BatchTraces(exporting.tracer, redact)
        self.around = traced(traces)
        self._closes = (lambda: traces.close(time.time_ns())), exporting.close

    def close(self) -> None:
        """The actors have ended: send what is left."""
        for close in self._closes:
            close()


def missing_packages(section: TracingSection) -> Iterator[str]:
    """One line where traces are configured and their packages are not installed."""
    if not section.endpoint:
        return
    try:
        import daemon.tracing.exporting  # noqa: F401
    except ImportError:
        yield f"tracing.endpoint: needs {PACKAGES}: pip install 'binlogd[tracing]'"
