"""Confluent's and Apicurio's converters, as plugins of a Kafka Connect."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from tests.live.confluent import confluent_jars
from tests.live.jars import jars_of
from tests.live.wires import CONVERTERS

_SERVICES = "META-INF/services/org.apache.kafka.connect.storage.Converter"


def add_plugins(plugins: Path) -> None:
    """Put them into a plugin folder; raises JarsError."""
    jars = jars_of("converters")
    parts = {
        "confluent": [confluent_jars(), jars / "confluent"],
        "apicurio": [jars / "apicurio"],
    }
    for name, folders in parts.items():
        plugin = plugins / name
        plugin.mkdir(parents=True)
        for folder in folders:
            for jar in folder.glob("*.jar"):
                (plugin / jar.name).symlink_to(jar)
        with ZipFile(plugin / "services.jar", "w") as services:
            services.writestr(_SERVICES, "".join(f"{one}\n" for one in CONVERTERS[name]))
