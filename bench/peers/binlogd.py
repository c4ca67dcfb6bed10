"""binlogd as it is installed: its daemon, its defaults, the job's topic and catalog.

``variant``: keys of the pipeline, ``write = "equality"``. The driver has 4 GB as the other
contestants on Spark have; all else is config.toml's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from bench.compare.dying import die_with_parent
from bench.compare.job import CATALOG, Begin, End, Job, Missing, read_job, tell
from bench.peers.tail import events
from daemon.config.file import ConfigError, load
from sparkwriter.session.java import CHECKOUT

GROUP = "binlogd-bench"
_POLL_S = 0.5
_DRAIN_WITHIN_S = 120.0

CONFIG = """
[daemon]
state_dir = "{folder}/state"
staging_dir = "{folder}/staging"
[log]
format = "json"
file = "{folder}/binlogd.log"
[kafka]
bootstrap.servers = "{bootstrap}"
[spark.conf]
spark.driver.memory = "4g"
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
spark.sql.warehouse.dir = "{folder}/spark-warehouse"
[sink.{catalog}]
kind = "iceberg"
[sink.{catalog}.catalog]
{properties}
[pipeline.bench]
topics = ["{topic}"]
group = "{group}"
format = "{format}"
mode = "{mode}"
target = "{catalog}.{{database}}.{{table}}"
{variant}
"""


def configured(job: Job) -> str:
    """The daemon's configuration."""
    quoted = {name: json.dumps(value) for name, value in (job.catalog | job.variant).items()}
    return CONFIG.format(
        folder=job.folder,
        bootstrap=job.bootstrap,
        topic=job.topic,
        group=f"{GROUP}-{uuid4().hex[:8]}",
        format=job.format,
        mode=job.mode,
        catalog=CATALOG,
        variant="\n".join(f"{name} = {quoted[name]}" for name in job.variant),
        properties="\n".join(f'"{name}" = {quoted[name]}' for name in job.catalog),
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
                    _await_commit(job, group, daemon)
                    tell(End(job.end))
                    daemon.terminate()
            case "caught_up":
                tell(End(job.end, {"changes": event["changes"]}))
    sys.exit(daemon.wait(_DRAIN_WITHIN_S))


def _await_commit(job: Job, group: str, daemon: subprocess.Popen[bytes]) -> None:
    """Return when the group has committed the end, seconds after it is visible."""
    place = TopicPartition(job.topic, 0)
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": group})
    try:
        while daemon.poll() is None:
            (found,) = consumer.committed([place], timeout=10.0)
            if found.offset >= job.end:
                return
            time.sleep(_POLL_S)
    finally:
        consumer.close()
    raise SystemExit(f"the daemon ended with {daemon.returncode}")


if __name__ == "__main__":
    main()
