"""Local files that a power cut leaves whole: the JVM's, and those that Python puts beside them.

A catalog's pointer is made durable by the catalog. What it points at must be so before, or a power
cut leaves a table that names files which are empty or not there. Hadoop's local files are handed
to the system and not waited for, so the JVM gets a file system whose ``close`` waits
(``DurableFiles.java``). The compiler that Spark ships makes it, in the JVM itself, before Spark
begins: no machine needs another one for it (docs/decisions/0041).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.runtime.files import sync

Java = Any

SOURCE = Path(__file__).with_name("DurableFiles.java")
CLASS = "binlogd.DurableFiles"


def install(jvm: Java, classes: Path) -> None:
    """Compile the file system into a folder of the JVM's class path.

    Before any context is made: what Spark's launcher has opened of Hadoop's own local files is
    closed, so that nobody finds that one in Hadoop's cache. Raises JavaFailure, OSError.
    """
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(SOURCE.read_text(encoding="utf-8"))
    made = compiler.getBytecodes()
    # An array: py4j ends an iterator by a Java exception, which pyspark can't convert between the
    # end of one JVM's context and the begin of the next one's.
    names = made.keySet().toArray()
    for name in (names[place] for place in range(len(names))):
        file = classes.joinpath(*str(name).split(".")).with_suffix(".class")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(made.get(name)))
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def make_durable_folder(folder: Path) -> None:
    """Make a folder and whatever is missing above it, each with a durable name. Raises OSError."""
    missing = [folder, *folder.parents]
    there = next((at for at, path in enumerate(missing) if path.is_dir()), len(missing))
    for path in reversed(missing[:there]):
        path.mkdir(exist_ok=True)
        sync(path.parent)
