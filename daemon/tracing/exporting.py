"""Sends spans by OTLP over HTTP, from a thread of its own. The only module that sets the SDK up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import cast

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Tracer

from daemon.config.sections import TracingSection

QUEUED = 8192
"""Spans that wait to be sent, at most: some 10 MB. Then the oldest are lost."""

REPORT_EVERY_S = 60.0
"""How often the log says that spans are lost, while nobody takes them."""

CLOSE_WITHIN_S = 2.0
"""The end of the run waits so long for the last spans. Longer would hold up a stop while the
receiver is away."""


class ReportingExporter:
    """An exporter that says in our log, seldom, that nobody takes the spans. On one thread."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._lost = 0
        self._reported_at = float("-inf")
        self._log = structlog.get_logger().bind(actor="tracing")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See ``SpanExporter``."""
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                self._log.info("traces_taken_again", lost=self._lost)
            self._lost, self._reported_at = 0, float("-inf")
            return result
        self._lost += len(spans)
        now = time.monotonic()
        if now - self._reported_at >= REPORT_EVERY_S:
            self._log.warning("traces_not_taken", lost=self._lost)
            self._reported_at = now
        return result

    def shutdown(self) -> None:
        """See ``SpanExporter``: a retry under way ends."""
        self._inner.shutdown()


class Exporting:
    """The SDK with one exporter. The main thread makes and closes it."""

    def __init__(self, section: TracingSection, run: str, version: str) -> None:
        # The library logs each attempt of each export.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = ReportingExporter(
            OTLPSpanExporter(section.url, headers=dict(section.headers) or None)
        )
        names = {"service.name": "binlogd", "service.instance.id": run, "service.version": version}
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(section.sample)),
            resource=Resource.create(names),
            shutdown_on_exit=False,
        )
        queue = BatchSpanProcessor(cast(SpanExporter, self._exporter), max_queue_size=QUEUED)
        self._provider.add_span_processor(queue)

    @property
    def tracer(self) -> Tracer:
        """Makes spans."""
        return self._provider.get_tracer("binlogd")

    def close(self) -> None:
        """Send what waits, within bounds: a thread that hangs in a socket ends with the process."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(CLOSE_WITHIN_S)
        if ending.is_alive():
            self._exporter.shutdown()
