"""The sinks start while an embedded broker does, and end where it does not come to more."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from changes.model.errors import SinkUnavailable
from daemon.app.sinks_start import SinksStart
from daemon.app.startup import StartUp, Unusable
from daemon.config.config import Config
from daemon.config.file import load
from sparkwriter.sinks import ConfiguredSinks

_FILE = """
[daemon]
state_dir = "{folder}/state"
staging_dir = "{folder}/staging"
{broker}
[sink.copy]
kind = "sqlite"
path = "{folder}/copy.db"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "copy.{{database}}.{{table}}"
"""
EMBEDDED = "[broker]\nembedded = true"


class Sinks(ConfiguredSinks):
    """Says when it is started, and how it is stopped."""

    def __init__(self, refuses: str = "") -> None:
        super().__init__()
        self.begun, self.refuses, self.stops = threading.Event(), refuses, 0

    def start(self, config: Config) -> None:  # type: ignore[override]
        self.begun.set()
        if self.refuses:
            raise SinkUnavailable(self.refuses)
        super().start(config)

    def stop(self) -> None:
        self.stops += 1
        super().stop()


def starting(folder: Path, sinks: Sinks, broker: str = EMBEDDED) -> SinksStart:
    path = folder / "config.toml"
    path.write_text(_FILE.format(folder=folder, broker=broker))
    config = load(path)
    (folder / "state").mkdir()
    return SinksStart(config, sinks, StartUp(config, sinks, False).end)


def test_sinks_start_while_the_broker_does(tmp_path: Path) -> None:
    """What comes next finds them started, once."""
    sinks = Sinks()
    begins = starting(tmp_path, sinks)
    with begins.begun():
        assert sinks.begun.wait(30.0)
        begins.finished()
        assert list(sinks.sinks()) == ["copy"]
    assert sinks.stops == 0  # whoever started them does that


def test_with_an_outside_broker_they_start_behind_the_questions_to_it(tmp_path: Path) -> None:
    """Nothing is waited for that they could be started beside."""
    sinks = Sinks()
    outside = '[kafka]\nbootstrap.servers = "127.0.0.1:9"'
    begins = starting(tmp_path, sinks, outside)
    with begins.begun():
        assert not sinks.begun.is_set()
        begins.finished()
        assert sinks.begun.is_set()


def test_sinks_that_nobody_waits_for_are_stopped(tmp_path: Path) -> None:
    """A broker that does not start leaves no Spark behind."""
    sinks = Sinks()
    with pytest.raises(Unusable, match="no broker"), starting(tmp_path, sinks).begun():
        raise Unusable("no broker")
    assert sinks.begun.is_set()
    assert sinks.stops == 1


def test_a_sink_that_refuses_is_told_where_it_is_waited_for(tmp_path: Path) -> None:
    """In the words it has without a broker."""
    begins = starting(tmp_path, Sinks("no Java"))
    with pytest.raises(Unusable, match="no Java"), begins.begun():
        begins.finished()
