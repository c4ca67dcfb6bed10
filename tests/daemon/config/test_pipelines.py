"""The configuration: what is taken, and what each mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.model import Mode
from changes.routes.routing import Route
from collector.connector.section import CollectorSection
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.gates import GateSection
from daemon.config.pipelines import PipelineSection
from databases.base.section import DatabaseSection
from settings.section import Section
from sources.registry.section import OAuthSection, RegistrySection
from sparkwriter.iceberg.section import IcebergSection, Write, write_of

BASE = """
[kafka]
bootstrap.servers = "127.0.0.1:9092"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:var/catalog.db"
warehouse = "var/warehouse"
"""
PIPELINE = """
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


def read(tmp_path: Path, text: str, **environment: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load(path, environment)


def problems(tmp_path: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, **environment)
    prefix = f"{tmp_path / 'config.toml'}: "
    return [problem.removeprefix(prefix) for problem in caught.value.problems]


def test_the_embedded_default_is_valid() -> None:
    """``config.toml`` of the checkout runs as it is."""
    config = load(Path(__file__).parents[3] / "config.toml", {})
    assert config.kafka == {"bootstrap.servers": "127.0.0.1:9092"}
    assert config.group("shop") == "binlogd-shop"
    assert config.spark.conf["spark.driver.memory"] == "2g"


def test_relative_paths_count_from_the_files_folder(tmp_path: Path) -> None:
    """The working directory of a service is no place to count from."""
    config = read(tmp_path, BASE + PIPELINE)
    assert config.daemon.state_dir == tmp_path / "var/state"
    assert config.sink["lake"].settings()["catalog.uri"] == f"jdbc:sqlite:{tmp_path}/var/catalog.db"
    assert config.sink["lake"].settings()["catalog.warehouse"] == f"{tmp_path}/var/warehouse"


@pytest.mark.parametrize("warehouse", ["s3://bucket/lake", "file:/data/lake", "/data/lake"])
def test_absolute_places_stay_as_they_are(tmp_path: Path, warehouse: str) -> None:
    """A bucket has no folder to count from."""
    config = read(tmp_path, BASE.replace("var/warehouse", warehouse) + PIPELINE)
    assert config.sink["lake"].settings()["catalog.warehouse"] == warehouse


def test_dotted_and_quoted_names_are_the_same_setting(tmp_path: Path) -> None:
    """TOML reads an unquoted dot as a table."""
    quoted = BASE.replace("bootstrap.servers", '"bootstrap.servers"')
    assert read(tmp_path, quoted + PIPELINE).kafka == read(tmp_path, BASE + PIPELINE).kafka


def test_variables_are_taken_from_the_environment(tmp_path: Path) -> None:
    """With a default where one is given."""
    text = BASE.replace("127.0.0.1:9092", "${BROKER}") + PIPELINE.replace(
        '["shop"]', '["${TOPIC:-shop}"]'
    )
    config = read(tmp_path, text, BROKER="b:1")
    assert config.kafka["bootstrap.servers"] == "b:1"
    assert config.pipeline["shop"].topics == ["shop"]


def test_a_variable_that_is_not_set_is_named_with_its_key(tmp_path: Path) -> None:
    """An empty password would fail much later, and elsewhere."""
    text = BASE.replace("127.0.0.1:9092", "${BROKER}") + PIPELINE
    assert problems(tmp_path, text) == [
        "kafka.bootstrap.servers: the environment variable BROKER is not set"
    ]


def test_an_unknown_key_is_refused_with_what_is_allowed(tmp_path: Path) -> None:
    """A typo must not be a silent default."""
    (found,) = problems(tmp_path, BASE + PIPELINE + 'modee = "append"\n')
    line = (BASE + PIPELINE).count("\n") + 1
    assert found.startswith(
        f"pipeline.shop.modee: unknown key (line {line}); did you mean mode? allowed: "
        "away_after_s, away_spill_bytes, collector, "
    )
    assert " mode, " in found


OF_REGISTRIES = """[registry.main]
url = "http://127.0.0.1:8081"
[registry.main.oauth]
token_url = "http://127.0.0.1:8082"
client_id = "i"
client_secret = "s-e-c-r-e-t"
"""
OF_COLLECTORS = '[collector.shop]\ndatabase = "db"\n'
OF_GATES = '[gates.g]\ntables = ["lake.shop.t"]\nevery = "1d"\n'
OF_DATABASES = '[database.db]\nurl = "mysql://127.0.0.1:3306/"\nuser = "u"\n'


@pytest.mark.parametrize("place", [
    "daemon", "log", "events", "metrics", "tracing", "jobs", "load", "batch", "memory", "spark",
    "pipeline.shop.ddl", "pipeline.shop.verify", "pipeline.shop.quota", "database.db",
    "sink.lake", "sink.lake.maintenance", "sink.lake.compaction", "registry.main",
    "registry.main.oauth", "collector.shop", "connect", "broker", "gates.g",
])  # fmt: skip
def test_a_misspelt_key_is_answered_with_the_keys_of_its_own_section(
    tmp_path: Path, place: str
) -> None:
    """Of each section that the model has; not with those of the whole file."""
    text = BASE + PIPELINE + OF_DATABASES + OF_REGISTRIES + OF_COLLECTORS + OF_GATES
    header, key = f"[{place}]\n", "misspelt = 1\n"
    text = text.replace(header, header + key) if header in text else text + header + key
    (found,) = problems(tmp_path, text)
    at = text.splitlines().index("misspelt = 1") + 1
    assert found.startswith(f"{place}.misspelt: unknown key (line {at}); allowed: ")
    allowed = found.partition("allowed: ")[2].split(", ")
    model: object = Config
    for part in place.split("."):
        model = section_below(model, part)
    assert isinstance(model, type)
    assert issubclass(model, Section)
    assert allowed == sorted(f.alias or name for name, f in model.model_fields.items())


def test_every_section_of_the_file_is_tried() -> None:
    """A new one joins the list above."""
    (mark,) = (
        m
        for m in test_a_misspelt_key_is_answered_with_the_keys_of_its_own_section.pytestmark  # type: ignore[attr-defined]
    )
    tried = {place.split(".")[0] for place in mark.args[1]}
    assert tried | {"kafka", "pipeline"} == set(Config.model_fields)


def section_below(model: object, part: str) -> object:
    """Told by hand: the names of pipelines and their like have no section of their own."""
    named = {
        "pipeline": PipelineSection, "database": DatabaseSection, "sink": IcebergSection,
        "registry": RegistrySection, "collector": CollectorSection,
        "gates": GateSection,
    }  # fmt: skip
    if part in named:
        return part
    if isinstance(model, str):
        return named[model]
    assert isinstance(model, type)
    assert issubclass(model, Section)
    if part == "oauth":
        return OAuthSection
    return model.model_fields[part].annotation


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('mode = "upset"', "pipeline.shop.mode: Input should be 'upsert' or 'append', not 'upset'"),
        (
            'write = "append"',
            "pipeline.shop: target 'lake.{database}.{table}': write: 'append'; allowed: merge, eq",
        ),
        ("keys = []", "pipeline.shop.keys: is empty"),
        ('time_zone = "Mars/Base"', "pipeline.shop.time_zone: unknown time zone 'Mars/Base'"),
        ('start = "middle"', "pipeline.shop.start.at: Input should be 'earliest', 'latest'"),
        ('start = {at = "offset"}', 'pipeline.shop.start: at = "offset" and offsets = '),
        (
            'start = {at = "timestamp", timestamp = 2026-01-01T00:00:00}',
            "pipeline.shop.start: timestamp needs a zone",
        ),
        (
            'start = {at = "offset", offsets = {"shop" = 1}}',
            "pipeline.shop.start.offsets: not a topic:partition: 'shop'",
        ),
        (
            'ddl = {truncate = "never"}',
            "pipeline.shop.ddl.truncate: Input should be 'follow', 'keep' or 'stop'",
        ),
        ('dead_letters = "t"', 'pipeline.shop.dead_letters: "file" or "topic:NAME" is required'),
        ("max_bad_records_per_hour = 0", "pipeline.shop.max_bad_records_per_hour: Input should be"),
        ("dead_letter_retry_s = -1", "pipeline.shop.dead_letter_retry_s: Input should be"),
        ('kafka = {group.id = "x"}', "pipeline.shop.kafka: group.id is set by binlogd itself"),
    ],
)
def test_a_wrong_value_names_its_key_and_what_is_allowed(
    tmp_path: Path, line: str, expected: str
) -> None:
    """One line for each mistake."""
    (found,) = problems(tmp_path, f"{BASE}{PIPELINE}{line}\n")
    assert found.startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"canal-json"', '"canal"', "pipeline.shop.format: unknown format 'canal'; allowed: "),
        ('"lake.{database}', '"pond.{database}', "pipeline.shop: target 'pond.{database}.{table}'"),
        ('topics = ["shop"]\n', "", "pipeline.shop.topics: missing"),
        ("[pipeline.shop]", '[pipeline."a b"]', "pipeline.a b: a name is letters, digits"),
    ],
)
def test_what_does_not_fit_together_is_named(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    """Formats, sinks, names."""
    assert problems(tmp_path, BASE + PIPELINE.replace(old, new))[0].startswith(expected)


@pytest.mark.parametrize("template", ["lake.{table}", "lake.{db}.{table}", "{sink}.a.b", "lake.a."])
def test_a_target_that_is_no_template_is_refused(tmp_path: Path, template: str) -> None:
    """Sink, namespace, table; and only the two placeholders."""
    text = BASE + PIPELINE.replace("lake.{database}.{table}", template)
    assert problems(tmp_path, text)[0].startswith("pipeline.shop")


def way(route: Route) -> Write:
    return write_of(dict(route.options))


def test_the_way_to_write_is_the_sinks_or_a_routes(tmp_path: Path) -> None:
    """The sink's where nothing is said, MERGE if it says nothing; a pipeline or route says it for
    itself."""
    (plain,) = read(tmp_path, BASE + PIPELINE).routes("shop")
    (quick,) = read(tmp_path, BASE + PIPELINE + 'write = "equality"\n').routes("shop")
    assert (way(plain), way(quick)) == (Write.MERGE, Write.EQUALITY)
    lake = BASE.replace('kind = "iceberg"', 'kind = "iceberg"\nwrite = "equality"')
    (of_sink,) = read(tmp_path, lake + PIPELINE).routes("shop")
    (own,) = read(tmp_path, lake + PIPELINE + 'write = "merge"\n').routes("shop")
    assert (way(of_sink), way(own)) == (Write.EQUALITY, Write.MERGE)
    text = BASE + PIPELINE.replace('target = "lake.{database}.{table}"\n', "")
    route = '[[pipeline.shop.route]]\ntarget = "lake.x.{table}"\n'
    config = read(tmp_path, text + route + 'write = "equality"\n')
    assert [way(one) for one in config.routes("shop")] == [Write.EQUALITY]
    (problem,) = problems(tmp_path, text + 'write = "merge"\n' + route)
    assert "mode, write, keys and types belong to each [[route]]" in problem


def test_compaction_is_bounded(tmp_path: Path) -> None:
    """A single file is not put together."""
    text = BASE.replace("[sink.lake.catalog]", "compaction.small_files = 1\n[sink.lake.catalog]")
    (problem,) = problems(tmp_path, text + PIPELINE)
    assert problem.startswith("sink.lake.compaction.small_files: ")


def test_several_routes_carry_their_own_mode_and_keys(tmp_path: Path) -> None:
    """One source feeds an upsert and a changelog target."""
    text = (
        BASE
        + PIPELINE.replace('target = "lake.{database}.{table}"', "")
        + """
[[pipeline.shop.route]]
target = "lake.{database}.{table}"
keys = ["id"]
[[pipeline.shop.route]]
tables = ["shop.orders"]
target = "lake.{database}.{table}_log"
mode = "append"
"""
    )
    one, two = read(tmp_path, text).pipeline["shop"].routes()
    assert (one.mode, one.keys, one.include) == (Mode.UPSERT, ("id",), ("*",))
    assert (two.mode, two.keys, two.include) == (Mode.APPEND, None, ("shop.orders",))


def test_target_and_routes_together_are_refused(tmp_path: Path) -> None:
    """Which of them would be meant?"""
    text = BASE + PIPELINE + '[[pipeline.shop.route]]\ntarget = "lake.a.b"\n'
    assert problems(tmp_path, text) == [
        "pipeline.shop: either target or one or more [[route]] is required, not both"
    ]


SECOND = PIPELINE.replace("pipeline.shop", "pipeline.other")


def test_two_owners_of_a_target_are_refused(tmp_path: Path) -> None:
    """They would fence each other for ever."""
    (found,) = problems(tmp_path, BASE + PIPELINE + SECOND)
    assert "pipeline.other: its targets 'lake.*.*' may be those of pipeline.shop" in found


def test_pipelines_with_targets_of_their_own_go_together(tmp_path: Path) -> None:
    """Told apart by what they include, or by the target's name."""
    apart = SECOND + 'include = ["billing.*"]\n'
    config = read(tmp_path, BASE + PIPELINE + 'include = ["shop.*"]\n' + apart)
    assert sorted(config.pipeline) == ["other", "shop"]


@pytest.mark.parametrize(
    ("one", "two", "meet"),
    [
        ("shop.*", "shop.orders", True),
        ("shop.o*", "shop.*s", True),
        ("shop.a*", "shop.b*", False),
        ("shop_?.x", "shop_1.x", True),
        ("shop_?.x", "shop_10.x", False),
        ("*.x", "shop.y", False),
    ],
)
def test_patterns_are_compared_not_names(tmp_path: Path, one: str, two: str, meet: bool) -> None:
    """Whether some table could match both."""
    text = f'{BASE}{PIPELINE}include = ["{one}"]\n{SECOND}include = ["{two}"]\n'
    if meet:
        assert "a target has one owner" in problems(tmp_path, text)[0]
    else:
        assert len(read(tmp_path, text).pipeline) == 2


def test_two_pipelines_in_one_group_are_refused(tmp_path: Path) -> None:
    """They would take each other's partitions."""
    text = BASE + PIPELINE + 'group = "g"\ninclude = ["a.*"]\n'
    found = problems(tmp_path, text + SECOND + 'group = "g"\ninclude = ["b.*"]\n')
    assert found == ["pipeline.other: group 'g' is pipeline.shop's already"]


def test_a_missing_broker_address_is_named(tmp_path: Path) -> None:
    """Nothing is guessed."""
    text = BASE.replace('bootstrap.servers = "127.0.0.1:9092"', "") + PIPELINE
    assert problems(tmp_path, text) == [
        'kafka: "bootstrap.servers" is missing; without a Kafka of your own: '
        "[broker] embedded = true"
    ]


def test_a_file_that_is_not_toml_names_the_line(tmp_path: Path) -> None:
    """The parser's word, with the place."""
    (found,) = problems(tmp_path, "[kafka\n")
    assert found.startswith("not TOML: ")
    assert "line 1" in found


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The path, and why."""
    with pytest.raises(ConfigError, match=r"nowhere\.toml: can't be read"):
        load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("text", ["${no pe}", "${file:}", "${credential:", "${A-b}"])
def test_what_looks_like_a_reference_and_is_none_is_refused(tmp_path: Path, text: str) -> None:
    """Taken as it stands, it would be a password that the broker refuses."""
    pipeline = PIPELINE.replace('["shop"]', f'["{text}"]')
    assert problems(tmp_path, BASE + pipeline) == [
        f"pipeline.shop.topics: {text} is no reference; allowed: "
        "${NAME}, ${NAME:-default}, ${file:PATH}, ${credential:NAME}"
    ]


def test_sparks_own_references_are_left_to_it(tmp_path: Path) -> None:
    """Spark replaces such names itself."""
    conf = '[spark.conf]\na = "${spark.master}"\n'
    assert read(tmp_path, BASE + PIPELINE + conf).spark.conf == {"a": "${spark.master}"}


@pytest.mark.parametrize("value", ["9092", '""', "true"])
def test_brokers_that_are_no_text_are_refused(tmp_path: Path, value: str) -> None:
    """A port alone names no broker, and librdkafka would wait for one for ever."""
    (problem,) = problems(tmp_path, BASE.replace('"127.0.0.1:9092"', value) + PIPELINE)
    assert problem.startswith('kafka.bootstrap.servers: "host:port" is required, not ')


@pytest.mark.parametrize("key", ["topics", "keys"])
def test_an_empty_list_is_told_as_empty(tmp_path: Path, key: str) -> None:
    """And the names of key columns are no secret."""
    pipeline = PIPELINE.replace('topics = ["shop"]', "topics = []") if key == "topics" else (
        PIPELINE + "keys = []\n"
    )  # fmt: skip
    assert problems(tmp_path, BASE + pipeline) == [f"pipeline.shop.{key}: is empty"]


def test_keys_are_shown_when_they_are_wrong(tmp_path: Path) -> None:
    """Only what is named like a secret and may be one is masked."""
    (problem,) = problems(tmp_path, BASE + PIPELINE + 'keys = "id"\n')
    assert problem.endswith(", not 'id'")


def test_positions_go_to_the_file_and_the_group_by_default(tmp_path: Path) -> None:
    """In this order: the file is never behind the group's commit."""
    shop = read(tmp_path, BASE + PIPELINE).pipeline["shop"]
    assert shop.offset_stores == ["file", "kafka-commit"]
    assert shop.offset_topic == "binlogd-offsets"


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        ('["kafka-topic", "kafka-commit"]', None),
        ('["memory", "kafka-commit"]', None),
        ('["kafka-commit"]', None),
        ("[]", "pipeline.shop.offset_stores: is empty"),
        ('["disk"]', "pipeline.shop.offset_stores.0: Input should be 'file', 'kafka-topic', 'kaf"),
        ('["file", "file"]', "pipeline.shop: offset_stores: one is named twice"),
        ('["kafka-commit", "file"]', "pipeline.shop: offset_stores: kafka-commit comes last"),
        ('["memory", "file"]', "pipeline.shop: offset_stores: memory adds nothing to a store"),
    ],
)
def test_which_stores_go_together(tmp_path: Path, stores: str, said: str | None) -> None:
    """What could not keep its promise is refused by name."""
    text = BASE + PIPELINE + f"offset_stores = {stores}\n"
    if said is None:
        read(tmp_path, text)
    else:
        (line,) = problems(tmp_path, text)
        assert line.startswith(said)


def test_a_force_needs_a_store_that_remembers_it(tmp_path: Path) -> None:
    """Or each start would go back again."""
    text = BASE + PIPELINE + (
        'offset_stores = ["kafka-commit"]\n'
        '[pipeline.shop.start]\nat = "earliest"\nforce = "again"\n'
    )  # fmt: skip
    (line,) = problems(tmp_path, text)
    assert line.startswith("pipeline.shop: offset_stores: start.force works once")


def test_the_offset_topic_is_none_that_is_read(tmp_path: Path) -> None:
    """Positions among the changes would end the pipeline at the first commit."""
    more = 'offset_stores = ["kafka-topic"]\noffset_topic = "shop"\n'
    (line,) = problems(tmp_path, BASE + PIPELINE + more)
    assert line == "pipeline.shop: offset_topic: 'shop' is one of the topics that are read"


def test_declared_types_are_checked_when_the_file_is_read(tmp_path: Path) -> None:
    """A type that is none is one line with the column and what is allowed."""
    types = 'types = { id = "bigint", price = "money" }\n'
    (problem,) = problems(tmp_path, BASE + PIPELINE + types)
    assert "types: price: unknown type 'money'; allowed: boolean, int, bigint" in problem


def test_debeziums_names_of_types_are_for_its_format_alone(tmp_path: Path) -> None:
    """What no message of another format can hold is refused there."""
    types = 'types = { at = "io.debezium.time.MicroTimestamp" }\n'
    (problem,) = problems(tmp_path, BASE + PIPELINE + types)
    assert "types: at: unknown type" in problem
    debezium = PIPELINE.replace("canal-json", "debezium-json")
    config = read(tmp_path, BASE + debezium + types)
    (route,) = config.pipeline["shop"].routes()
    assert route.types == (("at", "io.debezium.time.MicroTimestamp"),)


def test_types_belong_to_each_route_where_there_are_any(tmp_path: Path) -> None:
    """Beside routes a pipeline's own types would be without effect."""
    pipeline = PIPELINE.replace('target = "lake.{database}.{table}"\n', 'types = { id = "int" }\n')
    route = '[[pipeline.shop.route]]\ntarget = "lake.{database}.{table}"\n'
    assert "types belong to each [[route]]" in problems(tmp_path, BASE + pipeline + route)[0]
    typed = read(tmp_path, BASE + pipeline.replace("types", "#") + route + 'types = {id = "int"}\n')
    assert typed.pipeline["shop"].routes()[0].types == (("id", "int"),)


@pytest.mark.parametrize(("said", "policy"), [("true", "follow"), ("false", "keep")])
def test_drop_columns_is_the_short_form_of_a_policy(tmp_path: Path, said: str, policy: str) -> None:
    """Columns that are dropped at the source are kept, unless told otherwise."""
    config = read(tmp_path, BASE + PIPELINE + f"drop_columns = {said}\nddl.truncate = 'keep'\n")
    ddl = config.pipeline["shop"].ddl
    assert (ddl.drop_column, ddl.truncate) == (policy, "keep")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop_columns = 1\n", "drop_columns: true or false is required, not 1"),
        ('drop_columns = true\nddl.drop_column = "keep"\n', "say the same: set one of them"),
    ],
)
def test_a_short_form_that_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    """Nothing is taken for what it may have meant."""
    (problem,) = problems(tmp_path, BASE + PIPELINE + text)
    assert said in problem


def test_a_name_that_files_cannot_have_is_refused(tmp_path: Path) -> None:
    """A mark of a dead letter would be the first file with too long a name: after years."""
    longest = "p" * 128
    assert read(tmp_path, BASE + PIPELINE.replace("shop]", f"{longest}]")).pipeline.keys() == {
        longest
    }
    (said,) = problems(tmp_path, BASE + PIPELINE.replace("shop]", f"{longest}p]"))
    assert said == f"pipeline.{longest}p: a name has 128 characters at most"
