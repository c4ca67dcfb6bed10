"""Staging: decoding processes, and the files that they make of closed batches.

Arrow reads its allocator from the environment when its library is loaded: see ``daemon``.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
