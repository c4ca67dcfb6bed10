"""``python -m tests.live.shop``: a PostgreSQL that Debezium reads into Kafka in Avro, until Ctrl-C.

For ``docs/quickstart-debezium.md``, for those who have none of their own: a server with a shop of
two tables, a broker, Apicurio Registry, and Kafka Connect with Confluent's Avro converter.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from actors.runtime.jars import JarsError
from actors.runtime.programs import is_free
from demo.broker import BrokerError, DevBroker
from demo.servers.apicurio import Apicurio
from demo.servers.jars import bring
from tests.live.connect import Connect
from tests.live.partitions import made_by_connect
from tests.live.postgres import Postgres
from tests.live.program import HOST, LiveError
from tests.live.wires import FORMS, of_connector

POSTGRES_PORT, BROKER_PORT, REGISTRY_PORT = 15432, 19092, 18081
_READ_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.5
_DATABASE = "CREATE DATABASE shop"
_TABLES: Sequence[str] = (
    "CREATE ROLE binlogd LOGIN", "GRANT pg_read_all_data TO binlogd",
    """CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email varchar(60),
        born date, vip boolean NOT NULL)""",
    """CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, total numeric(10,2),
        paid timestamp, remark text)""",
    """INSERT INTO customers SELECT n, 'Customer ' || n, 'c' || n || '@example.org',
        date '1950-01-01' + n * 7, n % 10 = 0 FROM generate_series(1, 1000) AS n""",
    """INSERT INTO orders SELECT n, 1 + n % 1000, n / 7.0, timestamp '2026-01-01' + n * interval
        '1 minute', CASE WHEN n % 3 = 0 THEN 'urgent' END FROM generate_series(1, 4000) AS n""",
)  # fmt: skip


@contextmanager
def shop(data: Path, partitions: int) -> Iterator[Sequence[str]]:
    """Run it all; gives the lines that tell where what is. Raises LiveError, BrokerError,
    JarsError."""
    data.mkdir(parents=True, exist_ok=True)
    data.chmod(0o711)  # PostgreSQL runs as another user than root
    with ExitStack() as stack:
        postgres = Postgres(data.absolute() / "postgres")
        postgres.port = POSTGRES_PORT
        postgres.start()
        stack.callback(postgres.program.kill)
        _must(postgres, "postgres", [_DATABASE])
        _must(postgres, "shop", _TABLES)
        bring(Apicurio.name)
        registry = stack.enter_context(Apicurio(data.absolute() / "registry", REGISTRY_PORT))
        broker = stack.enter_context(DevBroker(data / "kafka", BROKER_PORT))
        connect = Connect(data.absolute() / "connect", broker.bootstrap)
        connect.add_converters()
        connect.start()
        stack.callback(connect.kill)
        connect.connect("shop", _connector(registry, partitions))
        _await(postgres, connect)
        yield (
            f"# PostgreSQL on {postgres.port}: psql -h {HOST} -p {postgres.port} -U postgres shop",
            f"# Kafka on {broker.bootstrap}, topics shop.public.customers and shop.public.orders",
            f"# schema registry on {registry.confluent_url}",
        )


def _must(postgres: Postgres, database: str, statements: Sequence[str]) -> None:
    if error := postgres.run(database, statements):
        raise LiveError(f"PostgreSQL: {error}")


def _connector(registry: Apicurio, partitions: int) -> Mapping[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": "shop", "tasks.max": "1", "plugin.name": "pgoutput",
        "database.hostname": HOST, "database.port": str(POSTGRES_PORT),
        "database.user": "postgres", "database.dbname": "shop",
        **made_by_connect(partitions),
        **of_connector(FORMS["avro"], registry.confluent_url, registry.apicurio_url),
    }  # fmt: skip


def _await(postgres: Postgres, connect: Connect) -> None:
    """Return when Debezium has read what was there, and follows the log. Raises LiveError."""
    deadline, pause = time.monotonic() + _READ_WITHIN_S, threading.Event()
    while not postgres.ask("SELECT 1 FROM pg_replication_slots WHERE active").rows:
        if failure := connect.failure("shop"):
            raise LiveError(f"Debezium does not start: {failure}")
        if time.monotonic() > deadline:
            raise LiveError("Debezium does not follow the log")
        pause.wait(_LOOK_EVERY_S)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    """Run it until a signal; 1 with a line on stderr where something can't start."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.shop", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder for all files")
    parser.add_argument("--partitions", type=int, default=6, help="of each topic")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        for port in (POSTGRES_PORT, BROKER_PORT, REGISTRY_PORT):
            if not is_free(port):
                raise LiveError(f"port {port} on {HOST} is in use")
        with shop(options.data, options.partitions) as lines:
            print("\n".join(lines), "# ready; Ctrl-C ends them", sep="\n", flush=True)
            threading.Event().wait()
    except (LiveError, BrokerError, JarsError) as problem:
        print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
