"""Lakes of servers for ``make chaos LAKE=…``: REST and S3 behind proxies, or Hive and HDFS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.integration.rig import Rig
from tests.lake.lakes import LAKES, Lake
from tests.lake.proxy import Proxy

NAMES: Mapping[str, str] = {"s3": "rest-s3", "hdfs": "hive-hdfs"}
"""What LAKE may be."""

_PATIENCE = {"s3.retry.min-wait-ms": "200", "s3.retry.max-wait-ms": "1000"}
"""As clients' own, in less time: a fault lasts for seconds here, not for minutes."""


@dataclass(slots=True)
class Place:
    """One lake, its servers, and what stands before them."""

    lake: Lake
    keys: Path
    """The folder with the store's keys, which the daemon's configuration names."""
    proxies: dict[str, Proxy] = field(default_factory=dict)
    """Of ``uri`` and ``s3.endpoint``."""
    away_s: float = 60.0
    """How long a fault that lasts is to last."""

    @property
    def catalog(self) -> dict[str, str]:
        """The catalog as the daemons have it."""
        ways = {key: proxy.url for key, proxy in self.proxies.items()}
        found = dict(self.lake.catalog) | ways
        if self.lake.storage == "s3":
            found |= _PATIENCE
            for key in ("s3.access-key-id", "s3.secret-access-key"):
                found[key] = f"${{file:{self.keys / key}}}"
        return found

    @property
    def settings(self) -> list[tuple[str, str]]:
        """What the daemons' configuration has besides."""
        lines = [f'conf."{key}" = "{value}"' for key, value in self.lake.conf.items()]
        return [("warm_up = false", "\n".join(["warm_up = false", *lines]))]

    def rotate(self, number: int) -> str:
        """Write other keys; gives the id of the new one."""
        for key in ("s3.access-key-id", "s3.secret-access-key"):
            (self.keys / key).write_text(f"{key}-number-{number}\n")
        return f"s3.access-key-id-number-{number}"


class LakeRig(Rig):
    """A rig whose daemons use such a lake; ``spark`` looks past the proxies."""

    place: Place


@contextmanager
def place(name: str, folder: Path, away_s: float) -> Iterator[Place]:
    """Start the servers of a lake; all is gone afterwards."""
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES[NAMES[name]](folder / "lake"))
        keys = folder / "keys"
        keys.mkdir()
        made = Place(lake, keys, away_s=away_s)
        made.rotate(1)
        for key in ("uri", "s3.endpoint"):
            if lake.catalog.get(key, "").startswith("http://"):
                upstream = urlsplit(lake.catalog[key]).netloc
                made.proxies[key] = stack.enter_context(Proxy(upstream))
        yield made
