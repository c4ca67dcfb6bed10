"""The decoding process of the flow without a sink: it does all but write the file."""

from __future__ import annotations

from actors.staging.child import main
from bench.rig import Counted

if __name__ == "__main__":
    main(Counted())
