"""A table's own storage: files that Python made are put there, and its files read from there.

Through the table's ``FileIO``, whichever it is. Where that is a folder of this machine it is
written and read as one: Hadoop's way there starts two processes for each new file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from actors.runtime.files import sync
from sparkwriter.iceberg.equality_files import Laid
from sparkwriter.iceberg.java import LakeTable
from sparkwriter.iceberg.layout import UNPARTITIONED, partition_json
from sparkwriter.iceberg.partitions import Partition
from sparkwriter.iceberg.publish import remove_files
from sparkwriter.iceberg.ranges import RangeFile, Ranges
from sparkwriter.iceberg.stored_keys import PlacedVector
from sparkwriter.session.durable_files import make_durable_folder
from sparkwriter.session.java_api import Java, JavaNames

log: Any = structlog.get_logger(__name__)


class TableFiles:
    """The files of tables, for one writer; called on its thread.

    Raises JavaFailure and OSError.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Java = spark.sparkContext._gateway
        self._jvm: Java = JavaNames(spark.sparkContext._jvm)
        self._places: list[str] = []
        self._ranges = Ranges(self._jvm)

    @contextmanager
    def together(self, table: LakeTable) -> Iterator[list[str]]:
        """Around what puts the files of one update: gives their places, as far as they are there.

        Where anything fails inside, they go again, the one that failed included: a disk that is
        full would else keep a part of a file for each time that the write is tried.
        """
        self._places = places = list[str]()
        try:
            yield places
        except BaseException:
            for place in places:
                self._take_away(table, place)
            raise

    def rows(self, table: LakeTable, laid: Sequence[Laid]) -> list[Java]:
        """Put files of rows into the table's storage; gives Iceberg's descriptions of them."""
        places = self._partitions(table, [each.partition for each in laid])
        made = []
        for each, place in zip(laid, places, strict=True):
            builder = self._iceberg.DataFiles.builder(table.metadata.spec())
            builder = builder if place is None else builder.withPartition(place)
            made.append(self._placed(table, each, builder))
        return made

    def keys(self, table: LakeTable, laid: Laid, ids: Sequence[int]) -> Java:
        """The same with a file of keys to delete, the columns of these ids, in all partitions."""
        array = self._gateway.new_array(self._gateway.jvm.int, len(ids))
        for at, id_ in enumerate(ids):
            array[at] = id_
        builder = self._iceberg.FileMetadata.deleteFileBuilder(table.metadata.spec(UNPARTITIONED))
        return self._placed(table, laid, builder.ofEqualityDeletes(array))

    def vectors(
        self,
        table: LakeTable,
        local: Path,
        placed: Iterable[PlacedVector],
        partitions: Mapping[str, Sequence[Any]],
    ) -> list[Java]:
        """The same with a Puffin file; gives a description for each of its vectors.

        ``partitions``: of each data file, by its place.
        """
        place, size = self._put(table, local, "puffin")
        spec_id = table.layout.spec_id
        said = [_vector(place, size, one, spec_id, partitions[one.data_file]) for one in placed]
        return self.deletes(table, said)

    def deletes(self, table: LakeTable, said: Sequence[dict[str, Any]]) -> list[Java]:
        """Files of deletions in files of the table's partitioning, from what Iceberg's JSON says
        of them.

        As those of one scan task, whose parser is public: to build each would be nine calls.
        """
        schema = table.schema_json() if table.layout.spec["fields"] else _NO_SCHEMA
        task = partition_json(table.layout, schema, list(said))
        made = self._iceberg.ScanTaskParser.fromJson(task, True).deletes()
        return [made.get(at) for at in range(len(said))]

    def _partitions(self, table: LakeTable, values: Sequence[Partition]) -> list[Java | None]:
        """Partitions as Iceberg has them: those of files that are read from its JSON."""
        if not table.layout.spec["fields"]:
            return [None] * len(values)
        spec_id = table.layout.spec_id
        files = [_vector("none", 1, _NO_VECTOR, spec_id, each) for each in values]
        return [file.partition() for file in self.deletes(table, files)]

    def open(self, table: LakeTable, location: str, size: int) -> pa.NativeFile:
        """A file of the table's storage, of ``size`` bytes, to be read on this thread."""
        here = local_path(table, location)
        if here is not None:
            return pa.OSFile(str(here))
        io = table.operations.io()
        return pa.PythonFile(RangeFile(self._ranges, io, location, size), mode="r")

    @property
    def _iceberg(self) -> Java:
        return self._jvm.org.apache.iceberg

    def _placed(self, table: LakeTable, laid: Laid, builder: Java) -> Java:
        """Its metrics are read from the local copy: on an object store that spares requests."""
        config = self._iceberg.MetricsConfig.forTable(table.table)
        metrics = self._metrics(laid.path, config)
        place, size = self._put(table, laid.path, "parquet")
        described = builder.withPath(place).withFormat("PARQUET").withFileSizeInBytes(size)
        return described.withMetrics(metrics).build()

    def _metrics(self, local: Path, config: Java) -> Java:
        """What Iceberg keeps of a file's columns, read from its footer.

        In the steps of ``ParquetUtil.fileMetrics``, which reads Hadoop's settings again for each
        file: that takes four times as long as the footer.
        """
        parquet = self._iceberg.shaded.org.apache.parquet
        file = parquet.io.LocalInputFile(self._jvm.java.io.File(str(local)).toPath())
        reader = parquet.hadoop.ParquetFileReader.open(file, self._read_options)
        try:
            footer = reader.getFooter()
        finally:
            reader.close()
        nothing_more = self._jvm.java.util.stream.Stream.empty()
        return self._iceberg.parquet.ParquetUtil.footerMetrics(footer, nothing_more, config)

    @cached_property
    def _read_options(self) -> Java:
        return self._iceberg.shaded.org.apache.parquet.ParquetReadOptions.builder().build()

    def _put(self, table: LakeTable, local: Path, kind: str) -> tuple[str, int]:
        """Copy a file to where the table keeps its data; gives its location and size in bytes."""
        lake, name = table.table, f"binlogd-{uuid4()}.{kind}"
        place = str(lake.locationProvider().newDataLocation(name))
        self._places.append(place)
        here = local_path(table, place)
        if here is not None:
            make_durable_folder(here.parent)
            shutil.copyfile(local, here)
            sync(here)
            sync(here.parent)
            return place, here.stat().st_size
        # The name is unique, so there is no need to check whether it is free.
        out = lake.io().newOutputFile(place).createOrOverwrite()
        try:
            path = self._jvm.java.io.File(str(local)).toPath()
            size = int(self._jvm.java.nio.file.Files.copy(path, out))
        finally:
            out.close()
        self._ranges.put(place, local)
        return place, size

    def _take_away(self, table: LakeTable, place: str) -> None:
        """Remove a file that no snapshot names. A failure is logged: another made us come here."""
        here = local_path(table, place)
        if here is None:
            remove_files(table, [place])
            return
        try:
            here.unlink(missing_ok=True)
        except OSError as error:
            log.warning("attempt_left_behind", reason=str(error))


_NO_SCHEMA = {"type": "struct", "schema-id": 0, "fields": list[Any]()}
_NO_VECTOR = PlacedVector("none", 0, 1, 1)


def _vector(
    place: str, size: int, placed: PlacedVector, spec_id: int, partition: Sequence[Any]
) -> dict[str, Any]:
    return {
        "spec-id": spec_id,
        "content": "position-deletes",
        "file-path": place,
        "file-format": "puffin",
        "partition": list(partition),
        "file-size-in-bytes": size,
        "record-count": placed.rows,
        "referenced-data-file": placed.data_file,
        "content-offset": placed.offset,
        "content-size-in-bytes": placed.length,
    }


def local_path(table: LakeTable, location: str) -> Path | None:
    """The location as a path of this machine, None where it is none."""
    scheme, colon, rest = location.partition(":")
    if not colon and location.startswith("/"):
        scheme, rest = "file", location
    if scheme != "file" or not table.is_hadoops:
        return None
    return Path("/" + rest.lstrip("/"))
