"""The decoding process of the flow without a sink: it does all but write the file."""

from __future__ import annotations

from bench.rig import Counted
from daemon.staging.child import main

if __name__ == "__main__":
    main(Counted())
