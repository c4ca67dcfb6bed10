"""``python -m demo.replicate.database``: a database with rows in five tables, until Ctrl-C.

For whoever has none at hand to try ``binlogd replicate`` with. Its user may do nothing yet.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from actors.runtime.programs import ProgramError, is_free
from demo.replicate.source import PASSWORD, SOURCES, Source

PORT = 13306


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def main() -> int:
    """Run it until a signal; 1 with a line on stderr where it can't start, or has ended."""
    parser = argparse.ArgumentParser(prog="python -m demo.replicate.database", description=__doc__)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--data", type=Path, required=True, help="folder, which is made")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        if not is_free(options.port):
            raise ProgramError(f"port {options.port} is in use: --port names another")
        source = Source(options.source, options.data.absolute())
        source.server.port = options.port
        try:
            is_new = not (options.data / "server" / "data").exists()
            source.start()
            if is_new:
                source.create(options.rows)
            print(f"# {source.url}, password {PASSWORD}")
            print("# ready; Ctrl-C ends it", flush=True)
            pause = threading.Event()
            while source.server.program.runs:
                pause.wait(0.5)
        finally:
            source.kill()
        raise ProgramError(f"it has ended; see the log in {options.data}")
    except ProgramError as problem:
        print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
