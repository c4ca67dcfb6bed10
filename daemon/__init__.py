"""The composition root: command line, configuration, Kafka adapters, files, signals, logs.

The first import of every command. What Arrow allocates with is read from the environment when its
library is loaded, so it is set here: one heap for Python and Arrow alike. With Arrow's own
allocator beside it a process keeps what a batch took in each of the two: the daemon 100 MB more
under load, each decoding process 35 to 65, and nothing quicker (measured). Who sets it keeps it.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
