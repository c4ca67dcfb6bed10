"""The start of the sinks: beside that of an embedded broker, which takes less time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actors.runtime.aside import Aside
from actors.staging.folder import clean_staging
from changes.model.errors import SinkUnavailable
from daemon.app.startup import Unusable
from daemon.config.config import Config
from sparkwriter.sinks import SinkTier


class SinksStart:
    """For the main thread."""

    def __init__(
        self, config: Config, tier: SinkTier, end: Callable[[Callable[[], object]], None]
    ) -> None:
        """``end`` carries out a step of the end, whatever that raises."""
        self._config, self._tier, self._end = config, tier, end
        self._begun: Aside[None] | None = None

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Remove what an earlier run left staged, and have the sinks start while an embedded broker
        does. ``finished`` waits for them; where it does not come to that, they are stopped here.
        Raises Unusable.
        """
        folder = self._config.daemon.staging_folder
        try:
            clean_staging(folder)
        except OSError as error:
            raise Unusable(f"daemon.staging_dir {folder} can't be used: {error}") from error
        if self._config.broker.embedded:
            self._begun = Aside(self._start)
        try:
            yield
        finally:
            if self._begun is not None:
                self._end(self._begun.result)
                self._end(self._tier.stop)

    def finished(self) -> None:
        """Start them, or wait until they are. Raises Unusable."""
        begun, self._begun = self._begun, None
        try:
            if begun is None:
                self._start()
            else:
                begun.result()
        except SinkUnavailable as error:
            raise Unusable(str(error)) from error

    def _start(self) -> None:
        self._tier.start(self._config)
