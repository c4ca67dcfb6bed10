"""``binlogd check-config``: a line for each problem, for each folly, and what would be done."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
socket.connection.setup.timeout.ms = 1000
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:c.db"
warehouse = "w"
s3.secret-access-key = "tide-pool-4411"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
include = ["shop.*"]
exclude = ["shop.tmp"]
target = "lake.{database}.{table}"
"""


def check(tmp_path: Path, text: str = TEXT, *options: str, mode: int = 0o600) -> Result:
    path = tmp_path / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    return CliRunner().invoke(app, ["check-config", "--config", str(path), *options])


def lines(result: Result, tmp_path: Path) -> list[str]:
    """What was said on standard error, but for the test's own folder being temporary."""
    prefix = f"{tmp_path / 'config.toml'}: "
    said = [
        line.removeprefix("binlogd: ").replace(prefix, "") for line in result.stderr.splitlines()
    ]
    return [line for line in said if "temporary files" not in line]


def test_a_good_configuration_tells_what_would_be_done(tmp_path: Path) -> None:
    """Pipelines, topics, routes, sinks; status 0; no secret."""
    result = check(tmp_path)
    assert (result.exit_code, lines(result, tmp_path)) == (0, [])
    assert "pipeline shop: shop (canal-json), group binlogd-shop, start earliest" in result.stdout
    assert (
        "  shop.* without shop.tmp -> lake.{database}.{table} (upsert, write merge)"
        in result.stdout
    )
    assert "  positions in file, kafka-commit\n" in result.stdout
    assert "s3.secret-access-key = ***" in result.stdout
    assert "tide-pool-4411" not in result.output


def test_the_way_to_write_is_told(tmp_path: Path) -> None:
    """Beside the mode, route by route, also where the sink says it."""
    of_sink = TEXT.replace('kind = "iceberg"', 'kind = "iceberg"\nwrite = "equality"')
    assert "-> lake.{database}.{table} (upsert, write equality)" in check(tmp_path, of_sink).stdout
    text = TEXT.replace('target = "lake', 'write = "equality"\ntarget = "lake')
    assert "-> lake.{database}.{table} (upsert, write equality)" in check(tmp_path, text).stdout


def test_formats_that_are_told_from_the_messages_are_explained(tmp_path: Path) -> None:
    """Nobody knows them before the first message."""
    result = check(tmp_path, TEXT.replace("canal-json", "auto"))
    assert (result.exit_code, lines(result, tmp_path)) == (0, [])
    assert "pipeline shop: shop (auto), group binlogd-shop" in result.stdout
    assert "  each topic's format is detected from its first messages" in result.stdout


def test_every_unknown_kafka_property_is_named(tmp_path: Path) -> None:
    """librdkafka tells one at a time."""
    text = TEXT.replace("[sink.lake]", 'fetch.wiat = 1\nfoo.bar = "x"\n[sink.lake]')
    result = check(tmp_path, text)
    assert result.exit_code == 2
    said = lines(result, tmp_path)
    assert sorted(line.split(":")[0] for line in said) == ["kafka.fetch.wiat", "kafka.foo.bar"]
    assert all("No such configuration property" in line for line in said)


def test_a_value_that_librdkafka_refuses(tmp_path: Path) -> None:
    """With what is allowed, in its words; the pipeline's own table is told apart."""
    text = TEXT + "[pipeline.shop.kafka]\nfetch.wait.max.ms = 999999999\n"
    result = check(tmp_path, text)
    (line,) = lines(result, tmp_path)
    assert result.exit_code == 2
    assert line.startswith("pipeline.shop.kafka.fetch.wait.max.ms: ")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("spark.sql.session.timeZone", "is set by binlogd itself: instants are written in UTC"),
        ("spark.master", "is set by binlogd itself: spark.master is a key of its own"),
        ("spark.sql.catalog.lake.uri", "belongs into [sink.lake.catalog]"),
    ],
)
def test_spark_settings_that_are_ours(tmp_path: Path, key: str, expected: str) -> None:
    """They would be without effect, or wrong."""
    result = check(tmp_path, TEXT + f'[spark.conf]\n"{key}" = "x"\n')
    (line,) = lines(result, tmp_path)
    assert result.exit_code == 2
    assert line.startswith(f"spark.conf.{key}: {expected}")


def test_a_metrics_address_needs_a_port(tmp_path: Path) -> None:
    """One line with an example."""
    result = check(tmp_path, TEXT + '[metrics]\nlisten = "127.0.0.1"\n')
    expected = "metrics.listen: '127.0.0.1' is not host:port, such as \"127.0.0.1:9464\""
    assert (result.exit_code, lines(result, tmp_path)) == (2, [expected])


def test_a_state_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    """A file is in the way."""
    (tmp_path / "var").write_text("")
    result = check(tmp_path)
    assert result.exit_code == 2
    assert f"daemon.state_dir: {tmp_path}/var is not a folder" in lines(result, tmp_path)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('[metrics]\nlisten = "0.0.0.0:1"\n', "metrics.listen: 0.0.0.0 is no loopback address"),
        ("[batch]\nmax_bytes = 999999999\n", "batch.max_bytes: 999999999 is more than"),
        ("[daemon]\ncommit_interval_s = 61\n", "daemon.commit_interval_s: after a crash"),
        ('[spark.conf]\n"spark.scheduler.mode" = "FIFO"\n', "spark.conf.spark.scheduler.mode: a"),
        (
            '[spark.conf]\nspark.authenticate = "false"\n',
            "spark.conf.spark.authenticate: every user of this machine may reach Spark's ports",
        ),
        (
            '[spark.conf]\nspark.hadoop.fs.file.impl = "a.b.Files"\n',
            "sink.lake.catalog.warehouse: is a folder, and files of a.b.Files are not waited for",
        ),
        (
            '[daemon]\nstaging_dir = "file:///mnt/s"\n[spark]\nmaster = "yarn"\n'
            '[spark.conf]\nspark.authenticate = "true"\nspark.driver.host = "d"\n',
            "sink.lake.catalog.warehouse: is a folder, and the files that a cluster writes",
        ),
        (
            '[pipeline.shop.kafka]\nisolation.level = "read_uncommitted"\n',
            "pipeline.shop.kafka.isolation.level: changes of aborted transactions",
        ),
        (
            "[pipeline.shop.kafka]\nstatistics.interval.ms = 0\n",
            "pipeline.shop.kafka.statistics.interval.ms: without statistics an outage is not seen",
        ),
        ('[pipeline.shop.start]\nat = "latest"\n', "pipeline.shop.start: what the topics hold"),
        ('offset_stores = ["file"]\n', "pipeline.shop.offset_stores: neither kafka-commit nor"),
        (
            'offset_stores = ["kafka-commit"]\n',
            "pipeline.shop.offset_stores: neither file nor kafka-topic",
        ),
    ],
)
def test_what_is_legal_but_unwise_is_a_warning(tmp_path: Path, more: str, expected: str) -> None:
    """Status 0 all the same."""
    result = check(tmp_path, TEXT + more)
    (line,) = lines(result, tmp_path)
    assert result.exit_code == 0
    assert line.startswith(f"warning: {expected}")


@pytest.mark.parametrize(("most", "warned"), [("32 GiB", True), ("33 GiB", False)])
def test_a_log_that_fills_the_state_directory_alone_is_a_warning(
    tmp_path: Path, most: str, warned: bool
) -> None:
    """Of each topic the embedded broker keeps ``broker.max_bytes``, 16 GiB where it is not set."""
    text = TEXT.replace('bootstrap.servers = "127.0.0.1:1"\n', "[broker]\nembedded = true\n")
    text = text.replace('topics = ["shop"]', 'topics = ["shop", "more"]').replace("[kafka]", "")
    text = text.replace("socket.connection.setup.timeout.ms = 1000\n", "")
    said = lines(check(tmp_path, text + f'[daemon]\nstate_max_bytes = "{most}"\n'), tmp_path)
    why = "warning: daemon.state_max_bytes: 34359738368 is no more than the 34359738368 bytes"
    assert [line.startswith(why) for line in said] == [True] * warned


@pytest.mark.parametrize(
    ("more", "warned"),
    [
        ("", False),
        ("[batch]\nmax_bytes = 16777216\n", False),
        ("[batch]\nmax_bytes = 268435456\n", True),
    ],
)
def test_defaults_that_nobody_set_are_no_folly(tmp_path: Path, more: str, warned: bool) -> None:
    """A batch larger than what may be borrowed is staged in pieces; that is a warning for who set
    its size. Many pipelines alone are no reason."""
    section = TEXT.split("[pipeline.shop]")[1]
    others = "".join(
        f"[pipeline.p{n}]{section.replace('shop', f's{n}')}".replace("{table}", f"{{table}}_{n}")
        for n in range(7)
    )
    said = lines(check(tmp_path, TEXT + others + more), tmp_path)
    assert any("batch.max_bytes" in line for line in said) is warned


def test_a_secret_that_others_may_read_is_a_warning(tmp_path: Path) -> None:
    """In the configuration itself, or in the file that it names."""
    (tmp_path / "pw").write_text("four-words")
    (tmp_path / "pw").chmod(0o644)
    text = TEXT + '[pipeline.shop.kafka]\nsasl.password = "${file:pw}"\n'
    said = lines(check(tmp_path, text, mode=0o644), tmp_path)
    assert len(said) == 2
    assert said[0].startswith("warning: sink.lake.catalog.s3.secret-access-key: is in ")
    assert said[1] == f"warning: {tmp_path}/pw: holds a secret and others may read it; chmod 600"
    assert "four-words" not in str(said)


def test_a_line_behind_a_secret_is_told(tmp_path: Path) -> None:
    """An editor's last line is taken off, a second one is sent to the server."""
    (tmp_path / "pw").write_text("four-words\n\n")
    (tmp_path / "pw").chmod(0o600)
    text = TEXT + '[pipeline.shop.kafka]\nsasl.password = "${file:pw}"\n'
    (said,) = lines(check(tmp_path, text), tmp_path)
    assert said == (
        "warning: pipeline.shop.kafka.sasl.password: a space or a line's end around it is a part of"
        " it"
    )


def test_connect_names_a_broker_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And goes on to the catalog."""
    monkeypatch.setattr("sources.kafka.admin.CONNECT_TIMEOUT_S", 1.0)
    (tmp_path / "w").write_text("in the way")
    result = check(tmp_path, TEXT, "--connect")
    assert result.exit_code == 2
    one, two = lines(result, tmp_path)
    assert one.startswith("pipeline.shop: no Kafka broker answers at 127.0.0.1:1")
    assert two.startswith(f"sink lake: can't write warehouse {tmp_path}/w")
