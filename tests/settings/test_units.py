"""Sizes and times in a configuration are written as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from settings.section import Section
from settings.units import Bytes, Seconds, bytes_of, seconds_of
from tests.daemon.operations.checks.test_check import TEXT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("5s", 5), ("30 m", 1800), ("30min", 1800), ("2h", 7200), ("1.5H", 5400),
     ("7d", 604_800), ("1w", 604_800)],
)  # fmt: skip
def test_a_time(text: str, seconds: float) -> None:
    """A number with its unit, a space between or none."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 64 << 20), ("64 MB", 64_000_000), ("1.5 GiB", 3 << 29), ("10 kb", 10_000),
     ("1_000 B", 1000), ("2tib", 2 << 40)],
)  # fmt: skip
def test_a_size(text: str, size: int) -> None:
    """Units of 1,024 say so by their ``i``."""
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "5", "-5s", "5 parsecs", "5 MB", "s", "1e3s", "1h30m"])
def test_no_time(text: str) -> None:
    """Refused with the units that there are."""
    with pytest.raises(ValueError, match="is no time: a number with ms, s, m, min, h, d, w is"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["", "5", "64M", "64 Mb/s", "-1 MB", "7d"])
def test_no_size(text: str) -> None:
    """``64M`` is one of two sizes: it is not guessed which."""
    with pytest.raises(ValueError, match="is no size: a number with B, kB, MB, GB, TB, KiB, MiB"):
        bytes_of(text)


def test_a_part_of_a_byte_is_no_size() -> None:
    """It is not rounded."""
    with pytest.raises(ValueError, match="no whole number of bytes"):
        bytes_of("0.3 B")


def file(folder: Path, batch: str) -> Path:
    path = folder / "config.toml"
    path.write_text(f"{TEXT}[batch]\n{batch}\n")
    return path


def test_a_file_has_either(tmp_path: Path) -> None:
    """Units, numbers, and what an environment variable says."""
    text = 'max_bytes = "64 MiB"\nmax_age_s = "${AGE}"'
    batch = load(file(tmp_path, text), {"AGE": "0.5"}).batch
    assert (batch.max_bytes, batch.max_age_s) == (64 << 20, 0.5)
    assert load(file(tmp_path, text), {"AGE": "500ms"}).batch == batch
    assert load(file(tmp_path, "max_bytes = 67_108_864\nmax_age_s = 0.5")).batch == batch


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('max_bytes = "5s"', "batch.max_bytes: '5s' is no size: a number with B, "),
        ('max_age_s = "5 MB"', "batch.max_age_s: '5 MB' is no time: a number with ms, "),
        ('max_age_s = "0s"', "batch.max_age_s: Input should be greater than 0, not 0.0"),
        ("max_bytes = 1.5", "batch.max_bytes: Input should be a valid integer, not 1.5"),
        ("max_age_s = 1e300", "batch.max_age_s: 1e+300 is no time: a hundred years at most"),
        ("max_age_s = inf", "batch.max_age_s: inf is no time: a hundred years at most"),
        ("max_age_s = nan", "batch.max_age_s: Input should be a finite number, not nan"),
        ('max_bytes = "9999999999 GB"', "batch.max_bytes: 9999999999000000000 is no size: "),
    ],
)
def test_a_wrong_unit_is_refused_at_its_place(tmp_path: Path, line: str, said: str) -> None:
    """With the key's name, and what may be there."""
    with pytest.raises(ConfigError) as refused:
        load(file(tmp_path, line))
    assert refused.value.problems[0].startswith(f"{tmp_path / 'config.toml'}: {said}")


def sections(of: type[Section] = Section) -> Iterator[type[Section]]:
    yield of
    for inner in of.__subclasses__():
        yield from sections(inner)


def test_no_number_of_a_file_is_infinite(tmp_path: Path) -> None:
    """Keys without a unit as well."""
    path = file(tmp_path, "")
    path.write_text(f"{path.read_text()}[pipeline.shop.quota]\nmessages_per_s = inf\n")
    with pytest.raises(ConfigError, match="messages_per_s: Input should be a finite number"):
        load(path)


def test_every_key_of_seconds_or_bytes_takes_units() -> None:
    """Also of a section that somebody adds."""
    assert Config in set(sections())
    keys = 0
    for section in sections():
        hints = get_type_hints(section, include_extras=True)
        for name in section.model_fields:
            kind = Bytes if name.endswith("_bytes") else Seconds if name.endswith("_s") else None
            if kind is not None and not name.endswith("_per_s"):
                assert hints[name] in (kind, kind | None), f"{section.__name__}.{name}"
                keys += 1
    assert keys > 25
