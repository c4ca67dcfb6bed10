"""Tables of one pattern in one target, each row with its shard: what the tables hold, together."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.model.model import TableName
from changes.routes.shaping.shape import Shape
from sparkwriter.kit.writer import TargetWriter
from sparkwriter.sqlite.store import SqliteStore
from tests.shaping.rig import Change, Flow, Row, Source, bring_messages, changes, route_of

PATTERNS = (r"/shop\.users_(\d+)/", r"/(old)\.users/")
TABLES = {
    "7": TableName("shop", "users_7"),
    "07": TableName("shop", "users_07"),
    "old": TableName("old", "users"),
}
ROW: Row = {"n": 1, "phone": "1", "note": "x"}


@given(
    changes(),
    st.lists(st.sampled_from(sorted(TABLES)), min_size=25, max_size=25),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 6), max_size=6),
)
def test_the_target_is_all_tables_rows_with_their_shards(
    made: list[Change], shards: list[str], masked: bool, minimal: bool, cuts: list[int]
) -> None:
    """The same keys in each; keys move, images are partial."""
    shape = Shape(
        shard="shard",
        shard_of=PATTERNS,
        rename=(("id", "key"),),
        masks=(("n", "redact"),) if masked else (),
        columns=("id", "n"),
    )
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "sink.db")
        flow = Flow(route_of(shape), Path(folder), lambda: TargetWriter(store), table=None)
        sources = {shard: Source(minimal, table) for shard, table in TABLES.items()}
        pairs = zip(shards, made, strict=False)
        values = [
            value
            for shard, change in pairs
            if (value := sources[shard].message(change)) is not None
        ]
        bring_messages(flow, values, cuts)
        assert flow.refused is None
        wanted = [
            {"key": key, "n": _masked(row["n"], masked), "shard": shard}
            for shard, source in sources.items()
            for key, row in source.rows.items()
        ]
        found = [] if flow.state.schema is None else store.read(flow.route.name).to_pylist()
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
        assert flow.state.schema is None or flow.state.schema.keys == ("key", "shard")
        store.close()


def _masked(value: object, masked: bool) -> object:
    return "***" if masked and value is not None else value


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TableName("shop", "users_"), "shard: shop.users_ has none"),
        (TableName("shop", "orders"), "shard: shop.orders has none"),
    ],
)
def test_a_table_without_a_shard_refuses_the_target(
    table: TableName, said: str, tmp_path: Path
) -> None:
    """An empty one would meet others."""
    store = SqliteStore(tmp_path / "sink.db")
    shape = Shape(shard="s", shard_of=(r"/shop\.users_(\d*)/",))
    flow = Flow(route_of(shape), tmp_path, lambda: TargetWriter(store), table=None)
    value = Source(False, table).message(Change("I", 1, 1, ROW, ()))
    assert value is not None
    bring_messages(flow, [value], [])
    assert flow.refused is not None
    assert said in flow.refused
    store.close()


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ({"shard_of": ()}, "tables must say which part of a name it is"),
        ({"shard_of": ("shop.users_*",)}, "no regular expression between slashes with one group"),
        ({"shard_of": (r"/shop\.users/",)}, "no regular expression between slashes with one group"),
        ({"shard_of": ("/(a)(b)/",)}, "no regular expression between slashes with one group"),
        ({"shard_of": ("/(/",)}, "is no regular expression"),
        ({"shard_of": ("/(a)/",), "shard": "_op"}, "_op is a name of binlogd's own columns"),
    ],
)
def test_what_makes_no_shard_is_named(shape: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Shape(**{"shard": "s", **shape})  # type: ignore[arg-type]
