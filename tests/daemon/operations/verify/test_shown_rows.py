"""What ``binlogd tables verify`` shows of planted rows: the text in the docs, and its picture."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from changes.model.model import TableName
from daemon.operations.verify.result_table import print_result
from tests.daemon.operations.verify.rig import Rig
from tests.databases.base.servers import Server
from tests.needs import needed
from tests.test_docs import CHECKOUT

pytestmark = pytest.mark.integration

COMMAND = "$ binlogd tables verify lake.shop.orders"
PICTURE = "verify.svg"
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.S)
"""Of other servers: a picture of the docs loads nothing."""

COLUMNS = """id BIGINT PRIMARY KEY, item VARCHAR(40), note VARCHAR(400), price DECIMAL(10,2),
    paid DATETIME(6), raw VARBINARY(20), qty INT"""
TYPES = {
    "id": "long", "item": "string", "note": "string", "price": "decimal(10, 2)",
    "paid": "timestamp", "raw": "binary", "qty": "int",
}  # fmt: skip
PLANTED = (
    "DELETE FROM {t} WHERE id = 11",
    "INSERT INTO {t} (id, item) VALUES (-1, 'nobody')",
    "UPDATE {t} SET item = 'before' WHERE id = 12",
    "UPDATE {t} SET note = left(note, length(note) - 1) WHERE id = 13",
    "UPDATE {t} SET price = price + 0.01 WHERE id = 14",
    "UPDATE {t} SET note = item WHERE id = 15",
    "UPDATE {t} SET note = NULL WHERE id = 16",
    "UPDATE {t} SET item = concat(item, ' ') WHERE id = 17",
    "UPDATE {t} SET paid = paid + INTERVAL '0.000001' SECOND WHERE id = 18",
    "UPDATE {t} SET raw = concat(raw, X'00') WHERE id = 19",
    "UPDATE {t} SET item = upper(item) WHERE id = 20",
    "UPDATE {t} SET qty = -qty WHERE id = 21",
)


def row(number: int) -> str:
    note = "''" if number == 16 else f"'note {number}'"
    return (
        f"({number}, 'tea {number}', {note}, {number}.05,"
        f" '2026-01-02 03:04:05.{number:06}', 'raw{number}', {number % 100 + 1})"
    )


@pytest.fixture
def rig(
    servers: Mapping[str, Server],
    drivers: None,
    spark: SparkSession,
    tmp_path: Path,
    lake_conf: Mapping[str, str],
) -> Rig:
    """A table of 20,000 rows in MariaDB, and its equal one in the lake."""
    with needed():
        server = servers["mariadb"]
    made = Rig(server, spark, tmp_path, lake_conf, table=TableName("shop", "orders"))
    made.run(f"CREATE TABLE shop.orders ({COLUMNS})")
    made.run("INSERT INTO shop.orders VALUES " + ", ".join(map(row, range(20_000))))
    made.filled(TYPES)
    return made


def same(text: str) -> str:
    """But for blanks, and the seconds that it took."""
    return re.sub(r"(\d+ +\d+ +\d+ +)[\d.]+( +differs)", r"\1S\2", " ".join(text.split()))


def test_the_docs_show_what_is_printed_of_planted_rows(rig: Rig) -> None:
    """Twelve rows, each ill in its own way; ``make pictures`` draws them anew."""
    for sql in PLANTED:
        rig.lake(sql)
    console = Console(record=True, width=122, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(COMMAND, highlight=False)
    print_result(console, rig.verified())
    text = console.export_text(clear=False, styles=False)
    if folder := os.environ.get("PICTURES"):
        form = FONTS.sub("", CONSOLE_SVG_FORMAT)
        console.save_svg(
            str(Path(folder) / PICTURE), title="binlogd", code_format=form, unique_id="verify"
        )
    shown = (CHECKOUT / "docs" / "verify.md").read_text()
    block = re.search(rf"```\n({re.escape(COMMAND)}\n.*?)```", shown, re.S)
    assert block is not None, text
    assert same(block[1]) == same(text), text
    drawn = (CHECKOUT / "docs" / "pictures" / PICTURE).read_text()
    words = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))
    assert same(html.unescape(words)).endswith(same(text)), text
