"""``python -m binlogd``: the command."""

from __future__ import annotations

from binlogd import main

main()
