"""The file that is written: it can be read, says what was seen, and no name breaks it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from daemon.cli.init.look import SeenTable, SeenTopic
from daemon.cli.init.text import NotASink, TablesPlace, configuration, pipeline_name
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
    (TablesPlace("var/warehouse"), "iceberg"),
    (TablesPlace("s3://lake/warehouse", "http://127.0.0.1:8181"), "iceberg"),
    (TablesPlace("hdfs://h/warehouse", "https://catalog"), "iceberg"),
    (TablesPlace("copy.db"), "sqlite"),
    (TablesPlace("postgresql://h:5432/shop", user="u", password="pass-word"), "jdbc"),
    (TablesPlace("jdbc:postgresql://h:5432/shop", user="u", password="pass-word"), "jdbc"),
]


@pytest.mark.parametrize(("place", "kind"), PLACES)
def test_it_is_a_configuration(tmp_path: Path, place: TablesPlace, kind: str) -> None:
    """Every command reads it; a refused table is quarantined."""
    path = tmp_path / "config.toml"
    path.write_text(configuration(KAFKA, place, [SEEN], "var"))
    config = load(path)
    assert config.sink["lake"].kind == kind
    pipeline = config.pipeline["shop-changes"]
    assert (pipeline.format, pipeline.on_refused_target) == ("canal-json", "quarantine")


def test_it_says_what_was_seen() -> None:
    text = configuration(KAFKA, TablesPlace("w"), [SEEN], "var")
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
    document = tomllib.loads(configuration(KAFKA, TablesPlace("w"), [seen], "var"))
    assert document["daemon"]["state_dir"] == "var/state"


@pytest.mark.parametrize("topic", ['a"b', "a\\b", "\x7f", "ü"])
def test_a_topics_name_stays_itself(topic: str) -> None:
    seen = SeenTopic(topic, None, "it is empty", {}, {})
    (pipeline,) = tomllib.loads(configuration(KAFKA, TablesPlace("w"), [seen], "v"))[
        "pipeline"
    ].values()
    assert (pipeline["topics"], pipeline["format"]) == ([topic], "auto")


@pytest.mark.parametrize(
    ("topic", "name"),
    [("shop", "shop"), ("a.b", "a-b"), ("1", "p-1"), ("...", "p"), (r"^shop\.(a|b)", "shop-a-b")],
)
def test_the_pipeline_has_a_name(topic: str, name: str) -> None:
    assert pipeline_name(topic) == name


@pytest.mark.parametrize(
    ("formats", "told"),
    [
        (["canal-json", "canal-json"], "canal-json"),
        (["canal-json", None], "canal-json"),
        (["canal-json", "maxwell-json"], "auto"),
        ([None, None], "auto"),
    ],
)
def test_several_topics_are_one_pipeline(
    tmp_path: Path, formats: list[str | None], told: str
) -> None:
    """Two would lead to the same targets."""
    seen = [SeenTopic(f"t{n}", name, "it is empty", {}, {}) for n, name in enumerate(formats)]
    path = tmp_path / "config.toml"
    path.write_text(configuration(KAFKA, TablesPlace("copy.db"), seen, "var"))
    (pipeline,) = load(path).pipeline.values()
    assert (pipeline.topics, pipeline.format) == (["t0", "t1"], told)


def test_a_pattern_stays_one(tmp_path: Path) -> None:
    """Not the topics that it matches now."""
    path = tmp_path / "config.toml"
    path.write_text(configuration(KAFKA, TablesPlace("copy.db"), [SEEN], "var", [r"^shop\."]))
    (pipeline,) = load(path).pipeline.values()
    assert (pipeline.topics, pipeline.format) == ([r"^shop\."], "canal-json")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (TablesPlace("s3://b/w"), "--catalog names the REST catalog"),
        (
            TablesPlace("ftp://b/w"),
            "hdfs://, mysql://, postgresql:// or a file NAME.db is required",
        ),
        (TablesPlace("w", "thrift://h"), "give the address of a REST catalog"),
    ],
)
def test_what_is_no_place_is_refused(place: TablesPlace, said: str) -> None:
    with pytest.raises(NotASink, match=said):
        configuration(KAFKA, place, [SEEN], "var")
