"""The contestants' jars: every list has its lock, and Flink's own are taken out of a package."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from actors.runtime.jars import JarsError, read_lock
from bench.peers.flink_libraries import fetch_libraries, unpack_jars
from bench.peers.jars import classpath, jar_list, lists


@pytest.mark.parametrize("name", lists())
def test_list_and_lock_name_the_same_jars(name: str) -> None:
    """What Ivy is told to fetch is what the lock has a hash for."""
    jars = jar_list(name)
    listed = {
        f"{entry.get('conf')}/{entry.get('name')}-{entry.get('rev')}.jar"
        for entry in ElementTree.parse(jars.ivy).getroot().iter("dependency")
    }
    assert listed == read_lock(jars.lock).keys()


def test_a_folder_without_jars_says_what_to_run(tmp_path: Path) -> None:
    """In one line, with the folder."""
    with pytest.raises(JarsError, match=f"no jars in {tmp_path}: run `python -m bench.peers.jars"):
        classpath(tmp_path)


def test_only_the_jars_of_lib_are_kept(tmp_path: Path) -> None:
    """No plugin, no text, and nothing that names a place outside; the package goes."""
    package = tmp_path / "flink.tar.gz"
    names = ["deps/lib/a.jar", "deps/lib/LICENSE", "deps/opt/b.jar", "deps/lib/../../../c.jar"]
    with tarfile.open(package, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(f"flink-1/{name}")
            entry.size = len(name)
            archive.addfile(entry, io.BytesIO(name.encode()))
    unpack_jars(package, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jar"]
    assert (tmp_path / "a.jar").read_text() == "deps/lib/a.jar"


def test_libraries_that_are_there_are_not_fetched_again(tmp_path: Path) -> None:
    """The stamp holds what they were made from; needs no network."""
    folder = tmp_path / "flink-libraries"
    folder.mkdir()
    lock = Path(__file__).parents[3] / "bench" / "peers" / "flink.txt"
    (folder / "made-from").write_text(lock.read_text())
    assert not fetch_libraries(tmp_path)
