"""The collector's jars: a part for the worker and one for each database, missing ones in a line."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from actors.runtime.jars import JarsError, extra_list, read_lock
from collector.jars import EXTRA, collector_folder, worker_classpath


def test_every_jar_of_the_list_has_its_hash() -> None:
    """A jar without one would be refused only when it has been fetched."""
    found = extra_list(EXTRA)
    named = {
        f"{one.get('conf')}/{one.get('name')}-{one.get('rev')}.jar"
        for one in ElementTree.parse(found.ivy).iter("dependency")
    }
    assert named == set(read_lock(found.lock))
    assert {name.split("/")[0] for name in named} == {"worker", "mariadb", "mysql", "postgres"}


def test_missing_jars_say_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line; once they are there, the class path has them in order."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path / "jars"))
    with pytest.raises(JarsError) as told:
        collector_folder("mysql")
    assert str(told.value) == "needs the jars of collector: run `make setup EXTRAS=collector`"
    worker = tmp_path / "jars-extras" / "collector" / "worker"
    worker.mkdir(parents=True)
    for name in ("b.jar", "a.jar"):
        (worker / name).touch()
    assert worker_classpath() == f"{worker / 'a.jar'}:{worker / 'b.jar'}"
