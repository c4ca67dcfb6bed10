"""Routes that shape rows: what each mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.routes.shaping.shape import Shape
from daemon.config.file import load
from daemon.operations.checks.check import warnings
from tests.daemon.config.test_pipelines import BASE, problems, read

ROUTE = """
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
[[pipeline.shop.route]]
target = "lake.{database}.{table}"
"""
SALT = "a salt of many characters"


def test_a_route_with_all_keys_is_a_shape(tmp_path: Path) -> None:
    text = (
        f'filter = "n > 0"\ncomputed = {{ c = "n + 1" }}\nmask = {{ phone = "sha256" }}\n'
        f'mask_salt = "{SALT}"\nrename = {{ a = "b" }}\ndrop_columns = ["x"]\n'
    )
    (route,) = read(tmp_path, BASE + ROUTE + text).routes("shop")
    assert route.shape == Shape(
        filter="n > 0",
        computed=(("c", "n + 1"),),
        masks=(("phone", "sha256"),),
        rename=(("a", "b"),),
        drop=("x",),
        salt=SALT,
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('filter = "n >"', "filter: a value is expected, not 'the end'"),
        ('filter = ""', "filter: is empty"),
        ('computed = { _op = "n + 1" }', "computed: _op is a name of binlogd's own columns"),
        ("computed = { c = \"system('x')\" }", "computed.c: system is no function; there are abs"),
        ('mask = { phone = "md5" }', "mask: column phone: unknown mask 'md5'; allowed:"),
        ('mask = { phone = "sha256" }', "mask: sha256 needs mask_salt, a secret of 16 characters"),
        ('mask = { id = "redact" }\nkeys = ["id"]', "mask: column id: rows are told apart by it"),
        ('drop_columns = ["id"]\nkeys = ["ID"]', "column ID is not shown, and is part of the key"),
        ('columns = ["a"]\ndrop_columns = ["b"]', "columns and drop_columns contradict each other"),
        ('shard = "s"', "shard: tables must say which part of a name it is"),
        ('shard = "s"\ntables = ["shop.*"]', "shard: 'shop.*' is no regular expression between"),
        ("tables = ['/(/']", "pattern '/(/' is no regular expression"),
        ('rename = { a = "x", b = "x" }', "rename: column x is there twice (case aside)"),
        (
            'partition_by = ["day(a)"]',
            "partition_by: 'day(a)' is no transform; expected: column, years(c)",
        ),
        ('sort_by = ["a", "a desc"]', "sort_by: column a is there twice"),
        (
            'table_properties = { "binlogd.shape" = "x" }',
            "table_properties: binlogd.shape is binlogd's own to set",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, lines: str, said: str) -> None:
    """Before anything starts."""
    (found,) = problems(tmp_path, BASE + ROUTE + lines)
    assert found.startswith("pipeline.shop")
    assert said in found


def test_the_salt_is_a_secret(tmp_path: Path) -> None:
    """It is shown nowhere, and whoever only asks a running daemon needs not read it."""
    text = f'mask = {{ a = "sha256" }}\nmask_salt = "{SALT}"\n'
    config = read(tmp_path, BASE + ROUTE + text)
    assert SALT not in config.redactor.text(f"it is {SALT}.")
    assert SALT not in repr(config.routes("shop"))
    assert any("mask_salt" in line for line in warnings(config, tmp_path / "config.toml"))
    path = tmp_path / "config.toml"
    path.write_text(BASE + ROUTE + 'mask = { a = "sha256" }\nmask_salt = "${file:absent}"\n')
    assert load(path, {}, lenient=True).routes("shop")[0].shape


@pytest.mark.parametrize(
    "lines", ['partition_by = ["a"]', 'sort_by = ["a"]', 'table_properties = { a = "b" }']
)
def test_a_sink_without_files_refuses_a_layout(tmp_path: Path, lines: str) -> None:
    """By the key's name."""
    sink = '[sink.pg]\nkind = "jdbc"\nurl = "jdbc:postgresql://127.0.0.1/shop"\nuser = "u"\n'
    route = ROUTE.replace("lake.", "pg.")
    (found,) = problems(tmp_path, BASE + sink + route + lines)
    assert f"{lines.split()[0]}: a sink of kind jdbc has nothing like it" in found


def test_a_layout_goes_to_the_sink(tmp_path: Path) -> None:
    """Beside the way to write, as text."""
    text = 'partition_by = ["days(a)"]\ntable_properties = { x = "1" }\nwrite = "equality"\n'
    (route,) = read(tmp_path, BASE + ROUTE + text).routes("shop")
    assert dict(route.options) == {
        "write": "equality",
        "partition_by": '["days(a)"]',
        "table_properties": '{"x": "1"}',
    }
