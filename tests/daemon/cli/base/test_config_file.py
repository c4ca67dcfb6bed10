"""Which configuration a command reads where no option names one, and that it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.cli.base.config_file import NoConfig, config_file
from tests.daemon.operations.checks.test_check import TEXT


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """The folder's file and the machine's, both there."""
    files = tmp_path / "config.toml", tmp_path / "etc.toml"
    for file in files:
        file.write_text(TEXT)
    return files


def test_the_first_that_names_one_decides(tmp_path: Path, places: tuple[Path, Path]) -> None:
    """Option, environment, this folder, the machine."""
    here, machine = places
    named = {"BINLOGD_CONFIG": "other.toml"}
    assert config_file(Path("own.toml"), named, places) == (Path("own.toml"), "")
    assert config_file(None, named, places) == (Path("other.toml"), "named by BINLOGD_CONFIG")
    assert config_file(None, {"BINLOGD_CONFIG": ""}, places) == (here, "in this folder")
    here.unlink()
    found = config_file(None, {}, places)
    assert found.path == machine
    assert str(found).startswith(f"configuration: {machine} (no --config, no BINLOGD_CONFIG, no ")


def test_none_at_all_is_refused_with_all_places(places: tuple[Path, Path]) -> None:
    """So nobody needs the manual to know where one may stand."""
    for file in places:
        file.unlink()
    with pytest.raises(NoConfig, match=r"BINLOGD_CONFIG is not set.*etc\.toml; `binlogd init`"):
        config_file(None, {}, places)


def test_a_link_that_leads_nowhere_is_no_other_file(places: tuple[Path, Path]) -> None:
    """Somebody meant it: the machine's own file in its place would be a surprise."""
    here, _ = places
    here.unlink()
    here.symlink_to("nowhere.toml")
    assert config_file(None, {}, places).path == here


def run(*words: str, config: Path) -> Result:
    return CliRunner().invoke(app, list(words), env={"BINLOGD_CONFIG": str(config)})


def test_check_config_says_which_file_it_read(tmp_path: Path) -> None:
    """Where the option does not say so itself."""
    path = tmp_path / "shop.toml"
    path.write_text(TEXT)
    said = f"configuration: {path} (named by BINLOGD_CONFIG)"
    assert run("check-config", config=path).stdout.splitlines()[0] == said
    assert "configuration:" not in run("check-config", "-c", str(path), config=path).stdout


def test_an_error_says_which_file_was_read(tmp_path: Path) -> None:
    """Of every command that reads one."""
    path = tmp_path / "shop.toml"
    path.write_text("[nothing")
    done = run("tables", "list", config=path)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        f"binlogd: configuration: {path} (named by BINLOGD_CONFIG)"
    )
