"""A connector's configuration: whole, without a secret, and nothing of ours set by hand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from changes.model.names import takes
from collector.connector.config import (
    _DEFAULTS,
    CLASSES,
    Surroundings,
    connector_config,
    pipeline_topics,
    plain_name,
    server_id,
    slot_name,
)
from collector.connector.owned import why_owned
from collector.connector.patterns import as_java, as_list, routers
from collector.connector.section import CollectorSection
from collector.reasons import hint
from databases.base.url import parse_url

CLIENTS = {
    "bootstrap.servers": "k:9092", "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": "${file:/s:sasl.jaas.config}",
}  # fmt: skip
SECRET = "${file:/s/shop.properties:database.password}"


def around(
    flavor: str = "mariadb", url: str = "mariadb://db.example/", **more: object
) -> Surroundings:
    login = next(parse_url(url).logins("reader", "s3cret-word", None, None))
    references = {"database.password": SECRET}
    whole = {"name": "shop", "flavor": flavor, "login": login, "patterns": ("shop.*",),
             "clients": CLIENTS, "references": references} | more  # fmt: skip
    return Surroundings(**whole)  # type: ignore[arg-type]


def section(**keys: object) -> CollectorSection:
    return CollectorSection.model_validate({"database": "shop", **keys})


@pytest.mark.parametrize("flavor", CLASSES)
def test_no_connector_has_a_password(flavor: str) -> None:
    """What Connect keeps in a topic and shows to all who ask holds references alone."""
    url = "postgresql://db.example/shop" if flavor == "postgresql" else "mariadb://db.example/"
    found = connector_config(section(), around(flavor, url))
    assert "s3cret-word" not in str(found)
    assert found["database.password"] == SECRET
    assert (found["exactly.once.support"], found["transaction.boundary"]) == ("required", "poll")
    assert found["snapshot.mode"] == "no_data"


def test_a_schema_history_logs_in_as_the_worker_does() -> None:
    """Its producer and its consumer are clients of their own."""
    found = connector_config(section(), around())
    for client in ("producer", "consumer"):
        at = f"schema.history.internal.{client}"
        assert found[f"{at}.security.protocol"] == "SASL_PLAINTEXT"
        assert found[f"{at}.sasl.jaas.config"] == "${file:/s:sasl.jaas.config}"
    assert found["schema.history.internal.kafka.topic"] == "binlogd-history-shop"


def test_a_slot_that_is_ahead_of_the_position_stops_postgresql() -> None:
    """A slot that was made anew would lose what was between without a word."""
    found = connector_config(section(), around("postgresql", "postgresql://db.example/shop"))
    assert found["offset.mismatch.strategy"] == "trust_offset"
    assert found["slot.failover"] == "true"
    assert (found["slot.name"], found["publication.name"]) == ("binlogd_shop", "binlogd_shop")
    named = connector_config(
        section(), around("postgresql", "postgresql://db.example/shop", publication="theirs")
    )
    assert named["publication.autocreate.mode"] == "disabled"


@pytest.mark.parametrize(
    "option",
    ["exactly.once.support", "transforms", "transforms.mine.type", "snapshot.mode",
     "database.password", "table.include.list", "value.converter", "slot.drop.on.stop",
     "schema.history.internal.kafka.topic", "errors.tolerance", "skipped.operations"],
)  # fmt: skip
def test_what_binlogd_sets_is_refused_by_name(option: str) -> None:
    """A configuration that would undo a promise is not read."""
    with pytest.raises(ValidationError, match=re.escape(f"config.{option}: is set by binlogd")):
        section(config={option: "x"})


def test_other_options_are_handed_on() -> None:
    """Those that lose nothing are anybody's, also over a default of ours."""
    found = connector_config(section(config={"max.batch.size": 10, "use.it": True}), around())
    assert (found["max.batch.size"], found["use.it"]) == ("10", "true")


def test_a_server_id_stays_and_is_the_topics() -> None:
    """Two collectors of one topic meet at the server; one may be given another number."""
    assert server_id("shop", section()) == server_id("shop", section())
    assert server_id("shop", section()) == server_id("other", section(topic="shop"))
    assert server_id("shop", section()) != server_id("crm", section())
    assert server_id("shop", section(server_id=7)) == 7
    assert 0 < server_id("shop", section()) < 2**32


def test_names_that_differ_stay_two_slots() -> None:
    """A slot's name has few signs."""
    names = ["shop", "Shop", "sh-op", "sh_op", "x" * 80, "x" * 81]
    found = [plain_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(re.fullmatch("[a-z0-9_]{1,63}", name) for name in found)
    assert slot_name("shop", section(slot="mine")) == "mine"


@given(
    pattern=st.text("ab.*?_- ,", min_size=1, max_size=8),
    name=st.text("ab.c_- ,", min_size=1, max_size=8),
)
def test_a_list_takes_all_that_a_pattern_takes(pattern: str, name: str) -> None:
    """What it takes beside that the routes leave out."""
    if takes(pattern, name):
        assert re.fullmatch(as_java(pattern), name)


def test_a_comma_in_a_name_does_not_end_an_expression() -> None:
    """Debezium separates a list at commas without a backslash."""
    assert as_list(["a.x,y", "b.*"]) == r"a\.x\,y,b\..*"
    assert as_list(["a.b", "*"]) is None


def routed(topic: str, groups: dict[str, list[str]], name: str) -> str:
    """As Connect's transforms, one after another."""
    found = routers(topic, groups)
    for each in found["transforms"].split(","):
        regex, to = found[f"transforms.{each}.regex"], found[f"transforms.{each}.replacement"]
        if re.fullmatch(regex, name):
            name = to
    return name


def test_groups_have_topics_and_the_rest_has_one() -> None:
    """A table goes to its group's topic, everything else to the collector's."""
    groups = {"orders": ["shop.order_*", "shop.lines"], "crm": ["crm.*"]}
    wanted = {
        "shop.shop.order_1": "shop.orders",
        "shop.shop.lines": "shop.orders",
        "shop.crm.people": "shop.crm",
        "shop.shop.crm": "shop",
        "shop": "shop",
        "shop.transaction": "shop",
        "__debezium-heartbeat.shop": "shop",
    }
    assert {name: routed("shop", groups, name) for name in wanted} == wanted
    assert routed("shop", {}, "shop.a.b") == "shop"


def test_a_pipeline_reads_what_its_collector_writes() -> None:
    """By names, or by a pattern where each table has a topic."""
    assert pipeline_topics("shop", section()) == ["shop"]
    grouped = section(topics="groups", groups={"a": ["x.y"]})
    assert pipeline_topics("shop", grouped) == ["shop", "shop.a"]
    assert pipeline_topics("shop", section(topics="tables")) == ["shop", r"^shop\..*"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"database": None}, "either database"),
        ({"topics": "groups"}, "belong together"),
        ({"groups": {"a": ["x.y"]}}, "belong together"),
        ({"tables": ["/x/"]}, "stars are taken here"),
        ({"tables": ["nodot"]}, "matches no table"),
        ({"connect_auth": "a:b"}, "only with connect"),
        ({"connect": "https://c:8083"}, '"database.password" is required'),
        ({"connect": "https://u:p@c:8083"}, "connect_auth"),
        ({"database": None, "url": "mysql://h:3306/x", "user": "u"}, r"\[database.NAME\]"),
        ({"database": None, "url": "oracle://h:1521/x", "user": "u",
          "on_lost_position": "load"}, "no table of oracle"),
        ({"slot": "Big"}, "small letters"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(keys: dict[str, object], said: str) -> None:
    """By name, with what is allowed."""
    with pytest.raises(ValidationError, match=said):
        section(**keys)


def test_nothing_that_must_be_so_can_be_set_by_hand() -> None:
    """It would be taken, and overruled without a word."""
    own = connector_config(section(), around()).keys() - _DEFAULTS.keys()
    assert [name for name in sorted(own) if why_owned(name) is None] == []


def test_a_record_that_is_too_large_has_a_way_out() -> None:
    """As Kafka's client says it."""
    said = (
        "RecordTooLargeException: The message is 70002992 bytes when serialized which is larger "
        "than 67108864, which is the value of the max.request.size configuration."
    )
    assert "binlogd collector reset shop" in hint(said, "shop")
