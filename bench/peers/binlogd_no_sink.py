"""binlogd up to the net changes: its actors, its decoding processes, its offset file, no sink.

The processes are up before the clock begins, as they are in a daemon that has run a while.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from bench.compare.job import Begin, End, read_job, tell
from bench.rig import config, run_flow
from daemon.admin.logs import set_up_logs
from daemon.config.sections import DaemonSection


def main() -> None:
    """Run the flow."""
    job = read_job()
    processors = DaemonSection().processors
    # Each run commits where it has come to: the next one begins with a group of its own.
    group = f"bench-{uuid.uuid4()}"
    settings = config(Path(job.folder), job.bootstrap, job.topic, group, processors)
    set_up_logs(settings.log, settings.redactor)  # to standard error
    run_flow(
        settings,
        begun=lambda: tell(Begin()),
        caught_up=lambda seconds: tell(End(job.end, {"seconds": round(seconds, 3)})),
    )


if __name__ == "__main__":
    main()
