"""The forms of the wires: all are met, and a marker is found in each without a decoder."""

from __future__ import annotations

import re

import pytest

from tests.changes.formats.recordings.recorded import FORMS as RECORDED
from tests.changes.formats.recordings.recorded import SOURCES, recording
from tests.live.json_schema import json_schema
from tests.live.seen import row_of
from tests.live.wires import FORMS, JSON, WIRES, form_of, of_connector, unread


def test_seeds_meet_every_form_of_every_source() -> None:
    """A source has the even seeds, or the odd ones."""
    for parity in (0, 1):
        seeds = range(parity, 80, 2)
        assert {form_of(seed, list(WIRES)).name for seed in seeds} == set(FORMS)
        assert {form_of(seed, ["json"]) for seed in seeds} == {JSON}


def test_each_form_is_recorded() -> None:
    """So that tests without servers read what runs read."""
    assert set(RECORDED) == set(FORMS)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", RECORDED)
def test_a_row_of_one_table_is_found_in_the_bytes(source: str, form: str) -> None:
    """That row, and none of another table."""
    records = recording(source, form).records
    rows = [row_of(FORMS[form], one.key, one.value, "last") for one in records]
    assert [row for row in rows if row is not None and row[0] == "last"] == [("last", "1")]


def test_a_connector_asks_the_registry_that_its_converter_speaks_to() -> None:
    """Key and value alike; plain JSON asks none."""
    assert not of_connector(JSON, "c", "a")
    avro = of_connector(FORMS["avro"], "c", "a")
    assert avro["key.converter.schema.registry.url"] == "c"
    assert avro["value.converter"].startswith("io.confluent.")
    headers = of_connector(FORMS["avro-headers"], "c", "a")
    assert headers["value.converter.apicurio.registry.url"] == "a"


def test_a_schema_of_connect_s_is_a_json_schema() -> None:
    """With its name, its type and what may be null."""
    column = {"type": "int32", "optional": True, "default": 7, "field": "n"}
    row = {"type": "struct", "name": "t.Value", "fields": [column]}
    assert json_schema(row) == {
        "type": "object", "title": "t.Value",
        "properties": {
            "n": {
                "oneOf": [
                    {"type": "null"},
                    {"type": "integer", "connect.type": "int32", "default": 7},
                ],
                "connect.index": 0,
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "statement", "left_out"),
    [
        ("avro", 'ALTER TABLE "t" ADD COLUMN "c1" int DEFAULT 7', True),
        ("avro", 'CREATE TABLE "t" ("c1" int DEFAULT NULL, "a b" timestamp)', False),
        ("avro", "CREATE TABLE `a_b` (id int)", True),
        ("proto", 'CREATE TABLE "t" ("id" int, "c1" timestamp)', True),
        ("proto", 'CREATE TABLE "t" ("id" int, "a b" int)', True),
        ("proto", 'CREATE TABLE "t" ("id" int, "c1" numeric(5,2))', False),
        ("jsonschema", 'ALTER TABLE "t" ADD COLUMN "c1" timestamp DEFAULT now()', False),
        ("proto", "CREATE TABLE `a`.`t` (`id` INT, `ǆ` INT)", True),
        ("proto", "CREATE TABLE `a`.`t` (`id` INT, `1a` INT)", True),
        ("proto", 'INSERT INTO "a"."t" ("id", "x.y") VALUES (1, 2)', True),
        ("proto", "USE `a`; INSERT IGNORE INTO `a`.`€` (`id`, `c_1`) VALUES (7, 'x')", False),
        ("proto", 'ALTER TABLE "p"."ü" ADD COLUMN "c1" int', False),
        ("proto", "ALTER TABLE `t` CHANGE COLUMN `c` `ü` INT", True),
        ("proto", 'ALTER TABLE "p"."t" RENAME COLUMN "c" TO "x.y"', True),
        ("proto", "INSERT INTO `€` (`id`) VALUES (1)", False),
    ],
)
def test_what_a_converter_loses_is_left_out(form: str, statement: str, left_out: bool) -> None:
    """And no more."""
    patterns = unread(FORMS[form])
    assert any(re.search(pattern, statement) for pattern in patterns) == left_out
