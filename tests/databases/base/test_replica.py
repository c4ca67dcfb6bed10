"""A real replica: its position is the primary's, and it is known what it lacks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from daemon.config.config import Config
from databases.base.errors import DatabaseRefused
from databases.opening import Primary, open_database
from tests.databases.base.conftest import folder
from tests.databases.base.servers import PASSWORD, as_server, replicated, within
from tests.live.mariadb import MariaDb
from tests.needs import needed

pytestmark = [pytest.mark.integration, pytest.mark.long]

Pair = tuple[MariaDb, MariaDb]


def now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with folder() as where, needed(), replicated(where) as both:
        yield both


def test_a_replica_tells_the_primarys_position(pair: Pair) -> None:
    """Up to which it has applied everything; stopped, or taken for a primary, it is told."""
    primary, replica = pair
    assert primary.run(["CREATE SCHEMA s", "CREATE TABLE s.t (id INT PRIMARY KEY)"]) == ""
    server = as_server(replica)
    file, offset = primary.ask("SHOW MASTER STATUS").rows[0][:2]
    database, wanted = server.open(role="replica"), f"mysql:2:{file}:{offset}"
    within(60, lambda: database.moment().position == wanted)
    assert database.check([], now_us).problems == ()
    assert replica.run(["STOP SLAVE SQL_THREAD"]) == ""
    (stopped,) = database.check([], now_us).problems
    assert stopped == "its replication has stopped; START REPLICA"
    (mistaken,) = server.open().check([], now_us).problems
    assert mistaken.startswith('role is "primary", but it replicates ')
    assert replica.run(["START SLAVE SQL_THREAD"]) == ""
    database.close()


def config(tmp_path: Path, pair: Pair, primary: int = 0) -> Config:
    first, copy = (as_server(one).section().url for one in (pair[primary], pair[1]))
    user = {"user": "jobs", "password": PASSWORD}
    return Config.model_validate(
        {
            "kafka": {"bootstrap.servers": "x:1"},
            "sink": {"lake": {"kind": "sqlite", "path": "x.db"}},
            "daemon": {"state_dir": str(tmp_path)},
            "database": {
                "first": {"url": first, **user},
                "copy": {"url": copy, "role": "replica", "primary": "first", **user},
            },
            "pipeline": {
                "p": {"topics": ["t"], "format": "canal-json", "target": "lake.{database}.{table}"}
            },
        }
    )


def test_what_a_replica_lacks_is_known(tmp_path: Path, pair: Pair) -> None:
    """It stands, the primary goes on: what is behind is not shown before it was applied."""
    settings = config(tmp_path, pair)
    primary, replica = pair
    assert replica.run(["STOP SLAVE SQL_THREAD"]) == ""
    assert primary.run(["CREATE SCHEMA behind"]) == ""
    with closing(open_database(settings, "copy")) as database:
        known = Primary(settings, "copy", database)
        wanted = known.position()
        assert not known.shown(wanted)
        assert replica.run(["START SLAVE SQL_THREAD"]) == ""
        within(60, lambda: known.shown(wanted))
        assert replica.ask("SHOW SCHEMAS LIKE 'behind'").rows == (("behind",),)
        known.close()


def test_a_position_in_another_log_is_refused(tmp_path: Path, pair: Pair) -> None:
    """A replica has a log of its own, whose files may have the same names."""
    settings = config(tmp_path, pair, primary=1)
    with closing(open_database(settings, "copy")) as database:
        known = Primary(settings, "copy", database)
        with pytest.raises(DatabaseRefused, match="must replicate that server itself"):
            known.shown(known.position())
        known.close()


def test_a_primary_has_all_at_once(tmp_path: Path, pair: Pair) -> None:
    """Nothing is asked."""
    settings = config(tmp_path, pair)
    with closing(open_database(settings, "first")) as database:
        known = Primary(settings, "first", database)
        assert known.shown(known.position())
