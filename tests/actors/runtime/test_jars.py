"""The jars: the lock holds them to the byte, and what is missing is said in one line."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from actors.runtime.jars import (
    LISTS,
    LOCK,
    JarsError,
    fetch,
    ivy_jar,
    jars_folder,
    lake_jars,
    own_jars,
    read_lock,
    verify,
)
from actors.runtime.java import find_java
from actors.runtime.truststore import PASSWORD, write_truststore
from tests.needs import missing

CONTENT = {"kafka/a-1.jar": b"first", "lake/b-2.jar": b"second"}


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A folder of two jars that match its lock."""
    folder = tmp_path / "jars"
    for path, content in CONTENT.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The lock of those jars."""
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in CONTENT.items()]
    (tmp_path / "jars.lock").write_text("".join(lines))
    return tmp_path / "jars.lock"


def test_jars_as_locked_are_accepted(jars: Path, lock: Path) -> None:
    """Both are looked at, and a file that is no jar does not matter."""
    (jars / "verified").write_text("a stamp")
    assert verify(jars, lock) == 2


def test_a_tampered_jar_is_refused(jars: Path, lock: Path) -> None:
    """One changed byte: the jar and both hashes are named, in one line."""
    (jars / "lake" / "b-2.jar").write_bytes(b"Second")
    with pytest.raises(JarsError) as told:
        verify(jars, lock)
    found, wanted = hashlib.sha256(b"Second").hexdigest(), hashlib.sha256(b"second").hexdigest()
    assert f"lake/b-2.jar has sha256 {found}, not {wanted}" in str(told.value)
    assert "\n" not in str(told.value)


def test_a_missing_jar_is_named(jars: Path, lock: Path) -> None:
    """A jar of the lock that isn't there."""
    (jars / "kafka" / "a-1.jar").unlink()
    with pytest.raises(JarsError, match=r"kafka/a-1\.jar is missing"):
        verify(jars, lock)


def test_an_extra_jar_is_named(jars: Path, lock: Path) -> None:
    """A jar that the lock doesn't know would be loaded all the same: it is refused."""
    (jars / "lake" / "evil.jar").write_bytes(b"third")
    with pytest.raises(JarsError, match=r"lake/evil\.jar is not in the lock"):
        verify(jars, lock)


def test_a_lock_of_garbage_is_refused(tmp_path: Path) -> None:
    """A line that sha256sum didn't write is an error, not an entry."""
    (tmp_path / "lock").write_text("abc  kafka/a.jar\n")
    with pytest.raises(JarsError, match="not a line of sha256sum"):
        read_lock(tmp_path / "lock")


def test_jars_that_match_are_not_fetched_again() -> None:
    """A second set-up needs no network: with every jar in place nothing is run."""
    assert not fetch(jars_folder())


def test_no_jars_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder is one line that says to run make setup."""
    monkeypatch.setenv("BINLOGD_JARS", str(tmp_path))
    with pytest.raises(JarsError, match="run `make setup`"):
        lake_jars()


def test_both_class_paths_are_whole() -> None:
    """Spark gets Iceberg and SQLite, the broker its own jar and a logger's binding."""
    assert [jar.name.partition("-")[0] for jar in lake_jars()] == ["iceberg", "sqlite"]
    assert {"kafka_2.13", "log4j"} <= {jar.name.partition("-")[0] for jar in own_jars("kafka")}


def test_list_and_lock_name_the_same_jars() -> None:
    """What Ivy is told to fetch is what the lock has a hash for."""
    root = ElementTree.parse(LISTS / "ivy.xml").getroot()
    listed = {
        f"{entry.get('conf')}/{entry.get('name')}-{entry.get('rev')}.jar"
        for entry in root.iter("dependency")
    }
    assert read_lock(LOCK).keys() == listed


def test_pyspark_brings_ivy() -> None:
    """The one Ivy of pyspark is found, whatever its version."""
    assert ivy_jar().name.startswith("ivy-")


@pytest.mark.integration
def test_java_reads_the_truststore(tmp_path: Path) -> None:
    """Every authority of this machine is in the file, as Java's own keytool sees it."""
    path = tmp_path / "authorities.jks"
    if not write_truststore(path):
        missing("ca-certificates", "this machine names no certificate authority")
    keytool = find_java().home.resolve() / "bin" / "keytool"
    if not keytool.exists():
        missing("keytool", "this Java has none")
    listed = subprocess.run(
        [keytool, "-list", "-keystore", path, "-storepass", PASSWORD],
        capture_output=True,
        text=True,
        check=True,
    )
    count = int.from_bytes(path.read_bytes()[8:12], "big")
    assert count == listed.stdout.count("trustedCertEntry") > 0


@pytest.mark.integration
def test_no_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be fetched: one line with the first jar that failed, and no half folder."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    with pytest.raises(JarsError, match="jars could not be fetched, is there a network") as told:
        fetch(tmp_path / "jars")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "jars").exists()
