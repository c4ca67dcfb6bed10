"""``python -m binlogd.demo``: a change stream in a broker of its own becomes tables, compared."""

from __future__ import annotations

import runpy

from binlogd import use_code

use_code()
runpy.run_module("demo", run_name="__main__", alter_sys=True)
