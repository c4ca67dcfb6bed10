"""What Arrow allocates with: the heap of all else, unless somebody chose another."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRINT = "import daemon.cli, pyarrow; print(pyarrow.default_memory_pool().backend_name)"


@pytest.mark.parametrize(("chosen", "used"), [(None, "system"), ("mimalloc", "mimalloc")])
def test_arrow_and_python_share_one_heap(chosen: str | None, used: str) -> None:
    """The command line is what systemd starts; its imports bring Arrow with them."""
    name = "ARROW_DEFAULT_MEMORY_POOL"
    env = {key: value for key, value in os.environ.items() if key != name}
    env |= {} if chosen is None else {name: chosen}
    said = subprocess.run(
        [sys.executable, "-c", PRINT], env=env, check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == used
