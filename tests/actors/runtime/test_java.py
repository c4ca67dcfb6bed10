"""Finding Java: the order of the places, the versions that fit, what is said when none does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from actors.runtime.java import JavaHome, JavaMissing, find_java, make_home


def _fake(home: Path, version: str, code: int = 0) -> Path:
    """Make a Java home whose java tells this version, as Java does, on stderr."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {code}\n"
    )
    java.chmod(0o755)
    return home


def _find(tmp_path: Path, **environ: str) -> JavaHome:
    return find_java(environ, tmp_path / "system", tmp_path / "own")


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    """Where JAVA_HOME and PATH both have one that fits, JAVA_HOME is taken."""
    home, path = _fake(tmp_path / "a", "21.0.8"), _fake(tmp_path / "b", "17.0.15")
    assert _find(tmp_path, JAVA_HOME=str(home), PATH=str(path / "bin")) == JavaHome(home, 21)


def test_path_goes_before_the_system(tmp_path: Path) -> None:
    """PATH is looked at before /usr/lib/jvm."""
    path = _fake(tmp_path / "b", "17.0.15")
    _fake(tmp_path / "system" / "java-21", "21.0.1")
    assert _find(tmp_path, PATH=str(path / "bin")) == JavaHome(path, 17)


def test_a_link_on_path_leads_to_its_home(tmp_path: Path) -> None:
    """/usr/bin/java is a link on Debian: JAVA_HOME is where it points."""
    home = _fake(tmp_path / "jdk", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert _find(tmp_path, PATH=str(tmp_path / "bin")) == JavaHome(home, 17)


def test_the_system_goes_before_our_own(tmp_path: Path) -> None:
    """Nothing in the environment: /usr/lib/jvm, and only then what set-up made."""
    _fake(tmp_path / "own", "21.0.8")
    assert _find(tmp_path) == JavaHome(tmp_path / "own", 21)
    home = _fake(tmp_path / "system" / "java-17", "17.0.15")
    assert _find(tmp_path) == JavaHome(home, 17)


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2", "25.0.1", "22-ea"])
def test_other_versions_are_passed_over(tmp_path: Path, version: str) -> None:
    """A JAVA_HOME that Spark can't use doesn't hide one that it can."""
    wrong = _fake(tmp_path / "wrong", version)
    right = _fake(tmp_path / "system" / "java-17", "17.0.15")
    assert _find(tmp_path, JAVA_HOME=str(wrong)) == JavaHome(right, 17)


def test_a_java_that_fails_is_passed_over(tmp_path: Path) -> None:
    """One that tells its version and then fails can't run anything."""
    broken = _fake(tmp_path / "broken", "17.0.1", code=1)
    right = _fake(tmp_path / "own", "21.0.8")
    assert _find(tmp_path, JAVA_HOME=str(broken)) == JavaHome(right, 21)


def test_none_says_what_to_do(tmp_path: Path) -> None:
    """What was found is named with its version, and what to install."""
    wrong = _fake(tmp_path / "wrong", "25.0.1")
    with pytest.raises(JavaMissing) as told:
        _find(tmp_path, JAVA_HOME=str(wrong))
    assert f"{wrong}: Java 25" in str(told.value)
    assert "make setup" in str(told.value)
    assert "openjdk-17-jre-headless" in str(told.value)
    assert "\n" not in str(told.value)


def test_our_own_java_drops_the_missing_module(tmp_path: Path) -> None:
    """The wrapper passes on every argument but that one, spaces and all, and the exit code."""
    runtime = tmp_path / "it's a runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nprintf "<%s>" "$@"\nexit 7\n')
    (runtime / "bin" / "java").chmod(0o755)
    make_home(runtime, tmp_path / "home")
    given = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "-Dx='$y'", "", "Main", "*"]
    done = subprocess.run(
        [tmp_path / "home" / "bin" / "java", *given], capture_output=True, text=True, check=False
    )
    assert done.stdout == "<-cp><a b:c><-Dx='$y'><><Main><*>"
    assert done.returncode == 7
