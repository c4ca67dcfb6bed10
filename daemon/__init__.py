"""The composition root: command line, configuration, Kafka adapters, files, signals, logs.

Every command imports this module first. Arrow reads its allocator from the environment when its
library is loaded, so it is set here: Python and Arrow share one heap. With Arrow's own allocator a
process keeps what a batch took in each of the two heaps: 100 MB more under load in the daemon, 35
to 65 MB more in each decoding process, and no gain in speed (measured). A value that the user sets
stays.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
