"""``binlogd init``: flags, a look at the topic, a file that nothing replaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.config.file import load
from demo.broker import DevBroker
from demo.produce import create_topic
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from tests.sources.fake_source import FakeSource

P0 = TopicPartition("shop", 0)


def canal(number: int, table: str = "orders", **more: object) -> bytes:
    """One row of a table, as Canal writes it."""
    row = {"id": str(number), "name": "x"}
    return json.dumps(
        {"database": "shop", "table": table, "type": "INSERT", "isDdl": False, "data": [row],
         "pkNames": ["id"], "mysqlType": {"id": "int", "name": "varchar(9)"}, **more}
    ).encode()  # fmt: skip


def init(folder: Path, *more: str) -> Result:
    flags = ["--broker", "127.0.0.1:1", "--topic", "shop", "--lake", str(folder / "copy.db")]
    output = ["--output", str(folder / "c.toml"), "--state", str(folder / "var")]
    return CliRunner().invoke(app, ["init", *flags, *output, *more])


def source(monkeypatch: pytest.MonkeyPatch, *values: bytes) -> FakeSource:
    made = FakeSource({P0: Watermarks(0, 0)}).opened(monkeypatch)
    made.produce(*values)
    return made


def test_it_writes_what_it_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Format, tables, keys; more records than are read; a bad one."""
    rows = [canal(n) for n in range(1_200)]
    source(monkeypatch, *rows, b"{", canal(1, "items", pkNames=["id", "name"]))
    done = init(tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == (
        "shop: canal-json, 2 tables in 1,000 records, 1 record can't be read"
    )
    text = (tmp_path / "c.toml").read_text()
    assert "#   shop.items: key id, name, 1 change" in text
    assert "#   shop.orders: key id, 998 changes" in text
    assert load(tmp_path / "c.toml").pipeline["shop"].format == "canal-json"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.toml"]


def test_tables_whose_messages_name_no_types_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Maxwell all, even the key; of Debezium those without a schema."""
    row = {"id": 7, "name": "x"}
    maxwell = {"database": "shop", "table": "orders", "type": "insert", "ts": 1, "data": row}
    source(monkeypatch, json.dumps(maxwell | {"primary_key_columns": ["id"]}).encode())
    done = init(tmp_path)
    assert done.stdout.splitlines()[0] == (
        "shop: maxwell-json, 1 table in 1 record, 1 of them with text columns alone"
    )
    text = (tmp_path / "c.toml").read_text()
    assert "#   shop.orders" in text[text.index("name no types") :].splitlines()
    load(tmp_path / "c.toml")


def test_an_empty_topic_is_detected_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source(monkeypatch)
    done = init(tmp_path)
    assert "it is empty: format = auto" in done.stdout
    assert load(tmp_path / "c.toml").pipeline["shop"].format == "auto"


def test_a_topic_of_nothing_known_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source(monkeypatch, b"hello", b"world")
    done = init(tmp_path)
    assert (done.exit_code, "format could not be detected" in done.stdout) == (0, True)
    assert "5 bytes that begin with" in (tmp_path / "c.toml").read_text()


def test_it_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("mine")
    done = init(tmp_path)
    assert (done.exit_code, done.stderr) == (
        2,
        f"binlogd: {tmp_path / 'c.toml'} exists already, and is not replaced: "
        f"--output {tmp_path / 'c-2.toml'} is free\n",
    )
    assert (tmp_path / "c.toml").read_text() == "mine"


def test_on_a_terminal_another_name_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And asked for again where the answer is taken, too."""
    source(monkeypatch, canal(1))
    monkeypatch.setattr("daemon.cli.init.command.on_a_terminal", lambda: True)
    (tmp_path / "c.toml").write_text("mine")
    (tmp_path / "d.toml").write_text("mine, too")
    flags = ["--broker", "127.0.0.1:1", "--topic", "shop", "--lake", str(tmp_path / "copy.db")]
    command = ["init", *flags, "--output", str(tmp_path / "c.toml")]
    answers = f"{tmp_path / 'd.toml'}\n\n"
    done = CliRunner().invoke(app, command, input=answers)
    assert done.exit_code == 0, done.output
    assert "[pipeline.shop]" in (tmp_path / "d-2.toml").read_text()
    assert (tmp_path / "d.toml").read_text() == "mine, too"


def test_what_is_missing_is_named_where_nobody_can_be_asked(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", "--output", str(tmp_path / "c.toml")])
    assert (done.exit_code, done.stderr) == (
        2,
        "binlogd: --broker is required: there is no terminal to ask on\n",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--kafka", "x"], "--kafka 'x': KEY=VALUE is required"),
        (["--kafka", "sasl.password=${file:/no/such}"], "c.toml: kafka.sasl.password: "),
        (["--kafka", "group.id=mine"], "c.toml: kafka: "),
        *(
            (["--lake", lake], f"{lake!r}: a folder, s3://, hdfs://")
            for lake in ("ftp://x", "", " ", "s3:/bucket/x", "~/lake", "~/lake.db")
        ),
    ],
)
def test_a_mistake_is_one_line_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], said: str
) -> None:
    source(monkeypatch, canal(1))
    done = init(tmp_path, *more)
    assert done.exit_code == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_is_away_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source(monkeypatch).away = True
    done = init(tmp_path)
    assert (done.exit_code, done.stderr) == (2, "binlogd: nobody is there\n")


@pytest.mark.integration
def test_check_config_accepts_the_file(tmp_path: Path, store_broker: DevBroker) -> None:
    """With a real broker, and ``--connect``: a first start would do it."""
    create_topic(store_broker.bootstrap, "init-shop")
    producer = Producer({"bootstrap.servers": store_broker.bootstrap})
    for number in range(20):
        producer.produce("init-shop", canal(number))
    producer.flush(30)
    file = tmp_path / "c.toml"
    flags = ["--broker", store_broker.bootstrap, "--topic", "init-shop"]
    lake = ["--lake", str(tmp_path / "copy.db"), "--state", str(tmp_path / "var")]
    done = CliRunner().invoke(app, ["init", *flags, *lake, "--output", str(file)])
    assert (done.exit_code, done.stderr) == (0, "")
    checked = CliRunner().invoke(app, ["check-config", "--connect", "--config", str(file)])
    problems = [line for line in checked.stderr.splitlines() if "warning" not in line]
    assert (checked.exit_code, problems) == (0, [])
