"""Files of staged rows, as a processor makes them and a writer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from actors.runtime.files import make_private_file
from changes.sql.spark.write_strategy import ROWS_A_TASK


class StagedStorage(Protocol):
    """The storage of staged tables. Its methods raise OSError."""

    def read(self, path: str) -> pa.Table:
        """Read a table that was written before."""
        ...

    def write(self, path: str, table: pa.Table) -> int:
        """Write a table, and return its bytes. A failed write leaves nothing."""
        ...


class StagedTables(StagedStorage, Protocol):
    """One from which a table is removed, too."""

    def remove(self, path: str) -> None:
        """Remove a table that is done with, if it is there."""
        ...


class ParquetTables:
    """Parquet files of this machine, for Spark.

    Nothing here needs to survive a crash: the changes are read again from Kafka. So nothing is
    fsynced.
    """

    def read(self, path: str) -> pa.Table:
        return pq.read_table(path, memory_map=False)

    def write(self, path: str, table: pa.Table) -> int:
        try:
            make_private_file(Path(path))
            pq.write_table(
                table, path, compression="zstd", compression_level=1, row_group_size=ROWS_A_TASK
            )
            return Path(path).stat().st_size
        except OSError:
            self.remove(path)
            raise

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)
