"""``python -m demo.check``: whether the lake of a configuration holds what the shop's stream says.

The stream is made again from its size and seed (``demo.produce``), the tables are read with Spark.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from actors.runtime.jars import JarsError
from actors.runtime.java import JavaMissing
from changes.model.errors import SinkUnavailable
from daemon.config.file import ConfigError, load
from demo.compare import compare_all
from demo.expected import expected_tables, keys_of
from demo.lake import CATALOG, open_session, read_tables
from demo.shop import DATABASE, Shop
from sparkwriter.iceberg.section import IcebergSection
from sparkwriter.session.java_api import JavaFailure, reason


def check(config: Path, changes: int, seed: int) -> list[str]:
    """What differs, a line each, and the last line; the topic must hold this stream alone."""
    settings = load(config)
    sink = settings.sink.get(CATALOG)
    if not isinstance(sink, IcebergSection):
        return [f"{config}: no sink {CATALOG} of kind iceberg"]
    session = open_session(settings.daemon.state_dir.parent, sink.catalog)
    try:
        found = read_tables(session, DATABASE)
    finally:
        session.stop()
    shop = Shop(changes, seed)
    messages = sum(1 for _ in shop.messages())
    differences = compare_all(expected_tables(shop, range(messages)), found, keys_of(shop))
    return differences or [f"OK, {changes} changes, {len(found)} tables equal"]


def main() -> int:
    """Compare; 0 where every table is equal, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m demo.check", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="binlogd's configuration")
    parser.add_argument("--changes", type=int, default=600_000, help="row changes (600000)")
    parser.add_argument("--seed", type=int, default=1, help="as of the stream")
    options = parser.parse_args()
    try:
        lines = check(options.config, options.changes, options.seed)
    except (ConfigError, SinkUnavailable, JarsError, JavaMissing) as problem:
        lines = [str(problem)]
    except JavaFailure as problem:
        lines = [f"the tables can't be read back: {reason(problem)}"]
    print("\n".join(lines))
    return int(not lines[-1].startswith("OK, "))


if __name__ == "__main__":
    sys.exit(main())
