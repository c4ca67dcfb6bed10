"""The file that is written: it can be read, says what was seen, and no name breaks it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from daemon.cli.init.look import SeenTable, SeenTopic
from daemon.cli.init.text import NotASink, Place, configuration, pipeline_names
from daemon.config.file import load

KAFKA = {"bootstrap.servers": "127.0.0.1:9092"}
SEEN = SeenTopic(
    "shop.changes",
    "canal-json",
    "",
    {},
    {
        "shop.orders": SeenTable(("id",), 120, {0}),
        "shop.log": SeenTable((), 3, {0}),
        "shop.items": SeenTable(("a", "b"), 7, {0, 1}),
    },
    130,
    2,
    "shop.changes:0 offset 7: not JSON",
)
PLACES = [
    (Place("var/warehouse"), "iceberg"),
    (Place("s3://lake/warehouse", "http://127.0.0.1:8181"), "iceberg"),
    (Place("hdfs://h/warehouse", "https://catalog"), "iceberg"),
    (Place("copy.db"), "sqlite"),
    (Place("postgresql://h:5432/shop", user="u", password="pass-word"), "jdbc"),
    (Place("jdbc:postgresql://h:5432/shop", user="u", password="pass-word"), "jdbc"),
]


@pytest.mark.parametrize(("place", "kind"), PLACES)
def test_it_is_a_configuration(tmp_path: Path, place: Place, kind: str) -> None:
    """Every command reads it; a refused table is quarantined."""
    path = tmp_path / "config.toml"
    path.write_text(configuration(KAFKA, place, [SEEN], "var"))
    config = load(path)
    assert config.sink["lake"].kind == kind
    pipeline = config.pipeline["shop-changes"]
    assert (pipeline.format, pipeline.on_refused_target) == ("canal-json", "quarantine")


def test_it_says_what_was_seen() -> None:
    text = configuration(KAFKA, Place("w"), [SEEN], "var")
    for line in (
        "#   shop.orders: key id, 120 changes",
        "#   shop.items: key a, b, 7 changes",
        "#   shop.log: no key, 3 changes",
        "# 2 records can't be read, for example shop.changes:0 offset 7: not JSON",
    ):
        assert line in text.splitlines()
    without_key = text[text.index("name no key") : text.index("several partitions")]
    assert ("shop.log" in without_key, "shop.orders" in without_key) == (True, False)
    assert "shop.items" in text[text.index("several partitions") :]


@pytest.mark.parametrize("name", ['x\n[daemon]\nstate_dir = "/"', "a\u2028b", "\x7f\x00", "\u202e"])
def test_no_name_gets_out_of_its_comment(name: str) -> None:
    seen = SeenTopic("t", "canal-json", "", {}, {name: SeenTable()}, 1, 1, name)
    document = tomllib.loads(configuration(KAFKA, Place("w"), [seen], "var"))
    assert document["daemon"]["state_dir"] == "var/state"


@pytest.mark.parametrize("topic", ['a"b', "a\\b", "\x7f", "ü"])
def test_a_topics_name_stays_itself(topic: str) -> None:
    seen = SeenTopic(topic, None, "it is empty", {}, {})
    (pipeline,) = tomllib.loads(configuration(KAFKA, Place("w"), [seen], "v"))["pipeline"].values()
    assert (pipeline["topics"], pipeline["format"]) == ([topic], "auto")


@pytest.mark.parametrize(
    ("topics", "names"),
    [
        (["shop"], ["shop"]),
        (["a.b", "a-b", "a_b", "a/b"], ["a-b", "a-b-2", "a_b", "a-b-3"]),
        (["1", "...", "-x"], ["p-1", "p", "x"]),
    ],
)
def test_pipelines_have_names_of_their_own(topics: list[str], names: list[str]) -> None:
    assert pipeline_names(topics) == names


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (Place("s3://b/w"), "--catalog names the REST catalog"),
        (Place("ftp://b/w"), "s3://, hdfs://, mysql://, postgresql:// or a file NAME.db is wanted"),
        (Place("w", "thrift://h"), "the address of a REST catalog is wanted"),
    ],
)
def test_what_is_no_place_is_refused(place: Place, said: str) -> None:
    with pytest.raises(NotASink, match=said):
        configuration(KAFKA, place, [SEEN], "var")
