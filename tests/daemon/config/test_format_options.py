"""What a pipeline's section tells its format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from changes.formats import FORMATS, NAMES, NEED_OPTIONS, make_format
from changes.model.model import FormatOptions
from daemon.config.file import ConfigError, load

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:9092"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:var/catalog.db"
warehouse = "var/warehouse"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


def options(tmp_path: Path, more: str) -> FormatOptions:
    path = tmp_path / "config.toml"
    path.write_text(TEXT + more)
    return load(path, {}).pipeline["shop"].format_options()


def test_nothing_set(tmp_path: Path) -> None:
    """Without options a format has its own defaults."""
    assert options(tmp_path, "") == FormatOptions()


def test_all_set(tmp_path: Path) -> None:
    """Zone, zero dates and the table of messages that name none reach the format."""
    more = """
time_zone = "Asia/Shanghai"
zero_dates = "error"
default_database = "d"
default_table = "t"
"""
    extra = {"default_database": "d", "default_table": "t"}
    assert options(tmp_path, more) == FormatOptions("Asia/Shanghai", "error", extra)


def test_unknown_policy(tmp_path: Path) -> None:
    """A word that is no policy for zero dates is refused with the ones that are."""
    with pytest.raises(ConfigError, match="zero_dates"):
        options(tmp_path, 'zero_dates = "keep"')


def test_encryption_key_is_a_secret(tmp_path: Path) -> None:
    """The key reaches the format, and is shown nowhere."""
    path = tmp_path / "config.toml"
    path.write_text(TEXT + 'encryption_key = "0123456789abcdef"\n')
    config = load(path, {})
    told = config.pipeline["shop"].format_options().extra
    assert told == {"encryption_key": "0123456789abcdef"}
    assert config.redactor.text("key 0123456789abcdef") == "key ***"


@pytest.mark.parametrize(
    ("format_", "more", "expected"),
    [
        ("ogg-json", 'positions = "postgres-lsn"', "ogg-json gives no positions"),
        ("canal-json", 'positions = "postgres-lsn"', "canal-json gives no other positions"),
        ("maxwell-json", 'encryption_key = "too-short"', "encryption_key"),
        ("auto", 'encryption_key = "too-short"', "encryption_key"),
        ("auto", 'positions = "postgres-lsn"\nencryption_key = "too-short"', "encryption_key"),
        ("auto", 'default_table = "t"\npositions = "tidb-commit-ts"', None),
        ("auto", 'positions = "postgres-lsn"\nencryption_key = "0123456789abcdef"', None),
        ("auto", 'default_table = "t"', None),
        ("upsert-json", "", "upsert-json needs it, for its records name no table"),
        ("upsert-json", 'default_database = "d"\ndefault_table = "t"', None),
    ],
)
def test_options_that_the_format_can_not_meet(
    tmp_path: Path, format_: str, more: str, expected: str | None
) -> None:
    """They are told with the configuration, and not by the daemon's fall at its start."""
    path = tmp_path / "config.toml"
    path.write_text(TEXT.replace("canal-json", format_) + more)
    if expected is None:
        assert load(path, {}).pipeline["shop"].format == format_
        return
    with pytest.raises(ConfigError, match=expected) as caught:
        load(path, {})
    assert "pipeline.shop" in str(caught.value.problems)
    assert "too-short" not in str(caught.value.problems)


def test_an_option_of_before_that_nothing_takes_is_not_sent_to_where_it_is_refused(
    tmp_path: Path,
) -> None:
    """It was passed over in silence; among the options it is a mistake."""
    path = tmp_path / "config.toml"
    path.write_text(TEXT + 'encryption_key = "0123456789abcdef"\n')
    ((at, line),) = load(path, {}).misplaced_options()
    assert (at, line[:42]) == (
        "pipeline.shop.encryption_key", "format canal-json does not take it: remove",
    )  # fmt: skip


def test_options_in_their_own_table(tmp_path: Path) -> None:
    """As they stand in ``[pipeline.shop.options]``."""
    more = '[pipeline.shop.options]\ndefault_database = "d"\npositions = "tidb-commit-ts"\n'
    extra = {"default_database": "d", "positions": "tidb-commit-ts"}
    assert options(tmp_path, more) == FormatOptions(extra=extra)


def test_a_key_among_the_options_is_a_secret(tmp_path: Path) -> None:
    """As it is beside them."""
    path = tmp_path / "config.toml"
    text = TEXT.replace("canal-json", "maxwell-json")
    path.write_text(f'{text}[pipeline.shop.options]\nencryption_key = "0123456789abcdef"\n')
    assert load(path, {}).redactor.text("key 0123456789abcdef") == "key ***"


@pytest.mark.parametrize(
    ("format_", "option", "expected"),
    [
        ("canal-protobuf", 'default_table = "t"', "canal-protobuf has no option 'default_table'"),
        (
            "canal-json",
            'tombstones = "delete"',
            "no option 'tombstones'; allowed: default_database",
        ),
        ("auto", 'tombstone = "delete"', "auto has no option 'tombstone'"),
        ("debezium-json", 'tombstones = "keep"', "'keep' is neither repeat nor delete"),
        ("auto", 'tombstones = "keep"', "'keep' is neither repeat nor delete"),
        ("maxwell-json", 'default_table = ""', "default_table"),
        ("upsert-json", 'default_table = "t"', "default_database: upsert-json needs it"),
        ("upsert-json", 'default_database = "d"', "default_table: upsert-json needs it"),
    ],
)
def test_options_that_are_refused(tmp_path: Path, format_: str, option: str, expected: str) -> None:
    """A format is told nothing that it would not use."""
    path = tmp_path / "config.toml"
    path.write_text(f"{TEXT.replace('canal-json', format_)}[pipeline.shop.options]\n{option}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert expected in "\n".join(caught.value.problems)
    assert "pipeline.shop" in "\n".join(caught.value.problems)


def test_an_option_is_said_once(tmp_path: Path) -> None:
    """Which of two holds nobody could see."""
    more = 'default_table = "t"\n[pipeline.shop.options]\ndefault_table = "u"\n'
    with pytest.raises(ConfigError) as caught:
        options(tmp_path, more)
    assert "default_table and options.default_table say the same" in str(caught.value.problems)


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_formats_whose_defaults_are_not_enough_are_known(name: str, by_key: bool) -> None:
    """Of the others nobody makes one to check a section that sets nothing."""
    if name in NEED_OPTIONS:
        with pytest.raises(ValueError, match=name):
            make_format(name, FormatOptions(by_key=by_key))
    else:
        assert make_format(name, FormatOptions(by_key=by_key)).name == name


def test_a_machine_without_time_zones_is_refused_with_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the daemon's fall at its start. A list of what is recorded decodes nothing."""

    class Zoneless(FORMATS["canal-json"]):  # type: ignore[misc]
        def __init__(self, options: FormatOptions) -> None:
            super().__init__(replace(options, time_zone="Nowhere/At_all"))

    monkeypatch.setitem(FORMATS, "canal-json", Zoneless)
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    with pytest.raises(ConfigError, match=r"pipeline\.shop: time zone 'Nowhere/At_all' is not kno"):
        load(path, {})
    assert load(path, {}, lenient=True).pipeline["shop"].format == "canal-json"
