"""The worker's REST API: without its secret nobody is told anything, and nothing is done."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from demo.broker import DevBroker
from demo.servers.mariadb import MariaDb
from tests.collector.running import running
from tests.collector.sources.test_mariadb import made, source

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]

_ASKED = (
    ("GET", "/"), ("GET", "/connectors"), ("GET", "/connectors/binlogd-shop/config"),
    ("GET", "/connectors/binlogd-shop/offsets"), ("GET", "/connector-plugins"), ("GET", "/health"),
    ("GET", "/admin/loggers"), ("PUT", "/admin/loggers/root"), ("POST", "/connectors"),
    ("PUT", "/connectors/binlogd-shop/config"), ("PUT", "/connectors/binlogd-shop/stop"),
    ("POST", "/connectors/binlogd-shop/restart"), ("DELETE", "/connectors/binlogd-shop"),
    ("DELETE", "/connectors/binlogd-shop/offsets"), ("HEAD", "/connectors"),
    # Between workers, signed by a key that they have in common: never by a login.
    ("POST", "/connectors/binlogd-shop/tasks"), ("PUT", "/connectors/binlogd-shop/fence"),
)  # fmt: skip


def test_without_the_secret_there_is_no_answer_and_no_change(
    tmp_path: Path, broker: DevBroker, mariadb: MariaDb, name: str
) -> None:
    """Of whatever method; its files are its owner's alone, and ``ps`` shows no secret."""
    made(mariadb, name)
    with running(tmp_path, broker, source(mariadb), f"{name}.*", topic=name) as it:
        it.until("running", lambda f: bool(f["position"]))
        config = it.rest.config("binlogd-shop")
        for method, path in _ASKED:
            body = b"[]" if method in ("POST", "PUT") else None
            request = urllib.request.Request(f"{it.rest.url}{path}", body, method=method)
            request.add_header("Content-Type", "application/json")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=30)
            said = refused.value.read().decode()
            assert refused.value.code in (400, 401), (method, path, said)
            assert refused.value.code == 401 or "signature" in said
        assert it.rest.config("binlogd-shop") == config
        assert it.rest.state("binlogd-shop").runs
        folder = tmp_path / "state" / "connect"
        assert folder.stat().st_mode & 0o777 == 0o700
        for file in ("worker.properties", "rest.properties", "jaas.conf"):
            assert (folder / file).stat().st_mode & 0o777 == 0o600
        secret = it.rest.auth.partition(":")[2]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = process.read_bytes()
            except OSError:
                continue  # it has ended
            assert secret.encode() not in line
        assert secret not in (folder / "connect.log").read_text()
