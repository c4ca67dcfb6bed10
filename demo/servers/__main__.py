"""``python -m demo.servers``: an object store and a REST catalog on this machine, until Ctrl-C.

Prints what a configuration needs to reach them. With ``--broker`` a Kafka broker runs, too.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from actors.runtime.programs import HOST, ProgramError, is_free
from demo.broker import BrokerError, DevBroker
from demo.servers.s3_lake import S3Lake

S3_PORT, REST_PORT = 19000, 18181
_LOOK_EVERY_S = 0.5


def section(catalog: Mapping[str, str]) -> str:
    """The catalog's section of a configuration whose sink is ``lake``."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in catalog.items()]
    return "\n".join(["[sink.lake.catalog]", *lines])


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    """Run them until a signal; 1 with a line on stderr where one can't start, or has ended."""
    parser = argparse.ArgumentParser(prog="python -m demo.servers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder for logs and names")
    parser.add_argument("--s3-port", type=int, default=S3_PORT)
    parser.add_argument("--rest-port", type=int, default=REST_PORT)
    parser.add_argument("--broker", type=int, metavar="PORT", help="a Kafka broker, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        for port in (options.s3_port, options.rest_port):
            if not is_free(port):
                raise ProgramError(f"port {port} on {HOST} is in use")
        with ExitStack() as stack:
            lake = stack.enter_context(S3Lake(options.data, options.s3_port, options.rest_port))
            if options.broker:
                broker = stack.enter_context(DevBroker(options.data / "kafka", options.broker))
                print(f"# Kafka on {broker.bootstrap}")
            print(f"{section(lake.catalog())}\n# ready; Ctrl-C ends them", flush=True)
            pause = threading.Event()
            while lake.rest.program.runs and lake.store.program.runs:
                pause.wait(_LOOK_EVERY_S)
        raise ProgramError(f"a server has ended; see the logs in {options.data}")
    except (ProgramError, BrokerError) as problem:
        print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
