"""binlogd as it is installed: its daemon, its defaults, the job's topic and catalog or database.

``variant``: keys of the pipeline, ``write = "equality"``. The driver has 4 GB as the other
contestants on Spark have; all else is config.toml's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from actors.runtime.java import CHECKOUT
from bench.compare.dying import die_with_parent
from bench.compare.job import CATALOG, DATABASES, Begin, End, Job, Missing, read_job, tell
from bench.peers.committed import await_committed
from bench.peers.tail import events
from daemon.config.file import ConfigError, load

GROUP = "binlogd-bench"
_LOOK_EVERY_S = 0.5
_DRAIN_WITHIN_S = 120.0

CONFIG = """
[daemon]
state_dir = "{folder}/state"
staging_dir = "{folder}/staging"
exit_when_stopped = true
[log]
format = "json"
file = "{folder}/binlogd.log"
[kafka]
bootstrap.servers = "{bootstrap}"
{registry}{sink}
[pipeline.bench]
topics = {topics}
group = "{group}"
format = "{format}"
mode = "{mode}"
target = "{catalog}.{{database}}.{{table}}"
{variant}
"""

REGISTRY = """
[registry.schemas]
url = {url}
"""
LAKE = """
[spark.conf]
spark.driver.memory = "4g"
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
spark.sql.warehouse.dir = "{folder}/spark-warehouse"
[sink.{catalog}]
kind = "iceberg"
[sink.{catalog}.catalog]
{properties}
"""
DATABASE = """
[sink.{catalog}]
kind = "jdbc"
url = {url}
user = {user}
"""


def configured(job: Job) -> str:
    """The daemon's configuration."""
    quoted = {name: json.dumps(value) for name, value in job.catalog.items()}
    keys = ({"registry": "schemas"} if job.registry else {}) | job.variant
    if any(len(ends) > 1 for ends in job.places.values()):
        keys |= {"partitioned_by": "key", "partitioner": "murmur2"}
    if job.catalog["type"] in DATABASES:
        sink = DATABASE.format(catalog=CATALOG, url=quoted["url"], user=quoted["user"])
    else:
        properties = "\n".join(f'"{name}" = {quoted[name]}' for name in job.catalog)
        sink = LAKE.format(folder=job.folder, catalog=CATALOG, properties=properties)
    return CONFIG.format(
        folder=job.folder,
        bootstrap=job.bootstrap,
        topics=json.dumps(list(job.places)),
        group=f"{GROUP}-{uuid4().hex[:8]}",
        format="debezium" if job.registry else job.format,
        mode=job.mode,
        catalog=CATALOG,
        variant="\n".join(f"{name} = {json.dumps(value)}" for name, value in keys.items()),
        registry=REGISTRY.format(url=json.dumps(job.registry)) if job.registry else "",
        sink=sink,
    )


def main() -> None:
    """Run the daemon until it has applied all; what it says of itself is the result's."""
    job = read_job()
    folder = Path(job.folder)
    path = folder / "config.toml"
    path.write_text(configured(job))
    try:
        group = load(path).group("bench")
    except ConfigError as refused:
        tell(Missing(f"this binlogd does not know it: {refused}"))
        return
    how = [] if job.live else ["--until-caught-up"]
    daemon = subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "run", *how, "--config", str(path)],
        cwd=CHECKOUT,
        preexec_fn=die_with_parent,
    )
    for event in events(folder / "binlogd.log", daemon):
        match event["event"]:
            case "running":
                tell(Begin(daemon.pid))
                if job.live:
                    # Seconds after it is visible.
                    await_committed(job, group, _LOOK_EVERY_S, lambda: _check(daemon))
                    tell(End(job.end))
                    daemon.terminate()
            case "caught_up":
                tell(End(job.end, {"changes": event["changes"]}))
    sys.exit(daemon.wait(_DRAIN_WITHIN_S))


def _check(daemon: subprocess.Popen[bytes]) -> None:
    if daemon.poll() is not None:
        raise SystemExit(f"the daemon ended with {daemon.returncode}")


if __name__ == "__main__":
    main()
