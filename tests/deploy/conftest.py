"""The files of deploy/, and a machine on which their configurations can be checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from actors.runtime.jars import jars_folder
from daemon.cli.__main__ import app

Check = Callable[[str], Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """``binlogd check-config`` on a text, with placeholders for secrets and for jars of S3."""
    jars, extra = tmp_path / "jars", tmp_path / "jars-extras/s3/lake"
    jars.symlink_to(jars_folder())
    extra.mkdir(parents=True)
    (extra / "iceberg-aws-bundle.jar").touch()
    monkeypatch.setenv("BINLOGD_JARS", str(jars))
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("kafka-password", "s3-access-key-id", "s3-secret-access-key", "catalog-token"):
        (secrets / name).write_text(f"placeholder of {name}\n")
        (secrets / name).chmod(0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(secrets))

    def checked(text: str) -> Result:
        path = tmp_path / "config.toml"
        text = text.replace("/etc/binlogd/secrets", str(secrets))
        path.write_text(text.replace("/var/lib/binlogd", str(tmp_path)))
        return CliRunner().invoke(app, ["check-config", "--config", str(path)])

    return checked
