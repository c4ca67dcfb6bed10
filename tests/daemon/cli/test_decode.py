"""``binlogd decode``: lines of JSON for people, and what is bad by file and line."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import FormatOptions
from daemon.cli.decode import decode_files
from daemon.cli.message_files import messages
from tests.changes import conformance
from tests.changes.formats.canal.messages import message

CANAL = CanalJson(FormatOptions())


def decoded(path: Path, *others: str) -> tuple[bool, list[Any], list[str]]:
    """Whether all was good, the printed lines as JSON, and the complaints."""
    out, errors = io.StringIO(), io.StringIO()
    good = decode_files([str(path), *others], CANAL, out, errors)
    return (
        good,
        [json.loads(line) for line in out.getvalue().splitlines()],
        (errors.getvalue().splitlines()),
    )


def binlogd(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "daemon.cli", "decode", *arguments],
        input=given,
        capture_output=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).resolve().parents[3],
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "messages.txt"


def test_a_change(file: Path) -> None:
    """One line for each change, with table, op, key, both images and the moment."""
    file.write_bytes(message("UPDATE", [{"id": "2", "name": "ä"}], [{"id": "1"}]) + b"\n")
    assert decoded(file) == (
        True,
        [
            {
                "table": "shop.orders",
                "op": "U",
                "key": {"id": 2},
                "before": {"id": 1, "name": "ä"},
                "after": {"id": 2, "name": "ä"},
                "ts_ms": 1589373515000,
            }
        ],
        [],
    )


def test_a_statement(file: Path) -> None:
    """DDL is printed with its text."""
    file.write_bytes(message("ALTER", None, isDdl=True, sql="ALTER TABLE t ADD a int"))
    (printed,) = decoded(file)[1]
    assert printed == {
        "table": "shop.t",
        "op": "DDL",
        "sql": "ALTER TABLE t ADD a int",
        "ts_ms": 1589373515000,
    }


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
        ("decimal(10,2)", "1.5", '"1.50"'),
        ("float", "3.14", "3.14"),
        ("bit(1)", "1", "true"),
        ("blob", "\u00ff\u0000", '"/wA="'),
        ("date", "2020-01-02", '"2020-01-02"'),
        ("datetime(6)", "2020-01-02 03:04:05.123456", '"2020-01-02T03:04:05.123456"'),
        ("datetime", "2020-01-02 03:04:05", '"2020-01-02T03:04:05"'),
        ("timestamp", "2020-01-02 03:04:05", '"2020-01-02T03:04:05Z"'),
        ("timestamp(3)", "2020-01-02 03:04:05.5", '"2020-01-02T03:04:05.500000Z"'),
        ("time", "-838:59:59", '"-838:59:59"'),
        ("varchar(9)", None, "null"),
    ],
)
def test_values(file: Path, kind: str, text: str | None, expected: str) -> None:
    """Integers are numbers of any size, decimals text, bytes base64, times ISO 8601."""
    file.write_bytes(message(data=[{"id": "1", "v": text}], types={"id": "int", "v": kind}))
    out = io.StringIO()
    assert decode_files([str(file)], CANAL, out, io.StringIO())
    assert f'"after": {{"id": 1, "v": {expected}}}' in out.getvalue()


def test_bad_lines(file: Path) -> None:
    """What is bad is reported with its line, and what stands around it is decoded."""
    good = message()
    bad = message(data=[{"id": "x"}])
    file.write_bytes(b"\n".join([good, b"{]", b"", bad, good, b"\xff\xfe", good[:90], good]))
    ok, printed, complaints = decoded(file)
    assert not ok
    assert [line["after"]["id"] for line in printed] == [1, "x", 1, 1]  # a misfit, as it came
    assert [line.rsplit(":", 1)[0][: len(str(file)) + 2] for line in complaints[:1]] == [
        f"{file}:2"
    ]
    assert complaints[1] == f"{file}:4: shop.orders: id: 'x' is not an int(11)"
    assert [line.removeprefix(f"{file}:").split(":")[0] for line in complaints] == list("2467")


def test_several_files(file: Path, tmp_path: Path) -> None:
    """A file that can't be read is reported, the others are decoded."""
    file.write_bytes(message())
    missing = str(tmp_path / "missing")
    ok, printed, complaints = decoded(file, missing, str(file))
    assert not ok
    assert len(printed) == 2
    assert complaints == [f"{missing}: No such file or directory"]


def test_pretty_printed(file: Path) -> None:
    """A message laid out over lines is one; several may follow each other."""
    pretty = json.dumps(json.loads(message()), indent=2).encode()
    bad = json.dumps({"type": "ODD", "data": []}, indent=2).encode()
    file.write_bytes(
        b"\xef\xbb\xbf" + pretty + b"\r\n" + bad + b"\n\n" + message() + b"\n" + pretty
    )
    ok, printed, complaints = decoded(file)
    assert not ok
    assert len(printed) == 3
    line = len(pretty.splitlines()) + 1
    assert complaints == [f"{file}:{line}: a Canal message of unknown type 'ODD'"]


def test_document_that_does_not_end() -> None:
    """What begins like a document and does not become one is given line by line."""
    lines = [b"[\n", b' {"a": 1}\n', b' {"b": 1}\n']
    assert list(messages(lines)) == list(enumerate(lines, 1))
    lines = [b'{"a": {"b": 1},\n', b'{"c": 2}\n', b'{"d": 3}']
    assert list(messages(lines)) == list(enumerate(lines, 1))


@pytest.mark.parametrize("path", conformance.cases(*conformance.CANAL, of="canal-json"))
def test_samples(path: Path) -> None:
    """A sample file is decoded whole, but for the one table that contradicts its types."""
    expected = conformance.expectations(path)
    _, printed, complaints = decoded(path)
    assert sum(line["op"] == "DDL" for line in printed) == expected.get("ddl_messages", 0)
    assert all("mydb.project" in complaint for complaint in complaints)
    project = expected.get("other_tables", {}).get("mydb.project", {})
    assert len(complaints) == project.get("final_row_count", 0)


def test_command() -> None:
    """The command reads the standard input and ends with 0 where all was good."""
    ended = binlogd("--format", "canal-json", "-", given=message() + b"\n" + message("DELETE"))
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [json.loads(line)["op"] for line in ended.stdout.splitlines()] == ["I", "D"]


def test_command_with_bad_input() -> None:
    """Bad input ends it with 1, reported on standard error."""
    ended = binlogd("--format", "canal-json", "-", given=b"nonsense\n" + message())
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"<stdin>:1: not a Canal message")
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "cannal"], "unknown format 'cannal'; known: "),
        (["--format", "canal-json", "--time-zone", "Mars/Base"], "time zone 'Mars/Base'"),
        (["--format", "canal-json", "--zero-dates", "keep"], "'keep' is none of null, error"),
    ],
)
def test_command_that_can_not_be(arguments: list[str], said: str) -> None:
    """Options that can't be met are named."""
    ended = binlogd(*arguments, "-")
    assert ended.returncode not in (0, 1)
    assert said in ended.stderr.decode()


def test_command_with_options() -> None:
    """The zone of timestamps, zero dates and the table of messages without one are options."""
    types = {"t": "timestamp", "d": "date"}
    value = message(
        data=[{"t": "2020-01-02 08:00:00", "d": "2020-01-02"}, {"t": None, "d": "0000-00-00"}],
        types=types,
        drop=["database", "table"],
        keys=None,
    )
    options = ["--time-zone", "Asia/Shanghai", "--database", "d", "--table", "t"]
    ended = binlogd("--format", "canal-json", *options, "-", given=value)
    printed = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["table"] for line in printed] == ["d.t", "d.t"]
    assert printed[0]["after"] == {"t": "2020-01-02T00:00:00Z", "d": "2020-01-02"}
    assert printed[1]["after"] == {"t": None, "d": None}
    strict = binlogd("--format", "canal-json", *options, "--zero-dates", "error", "-", given=value)
    assert strict.returncode == 1
    assert b"d: '0000-00-00' is not a date" in strict.stderr


def test_reader_that_has_seen_enough() -> None:
    """A reader that closes the pipe early ends the command without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-m", "daemon.cli", "decode", "--format", "canal-json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[3],
    ) as command:
        assert command.stdin is not None
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        command.stdin.write(message(data=[{"id": str(n)} for n in range(2000)]))
        command.stdin.close()
        errors = command.stderr.read()
        assert (command.wait(60), errors) == (141, b"")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(message("INSERT", [{"id": "1"}])), "is compressed by gzip; unpack it first"),
        (b"\x28\xb5\x2f\xfd rest", "is compressed by zstd; unpack it first"),
        (message("INSERT", [{"id": "1"}]).decode().encode("utf-16"), "is UTF-16 text"),
    ],
)
def test_a_file_that_is_no_text_is_one_line(file: Path, content: bytes, said: str) -> None:
    """Not a complaint for each of its lines; the next file is decoded."""
    file.write_bytes(content)
    other = file.with_name("other")
    other.write_bytes(message("INSERT", [{"id": "1"}]))
    good, changes, (complaint,) = decoded(file, str(other))
    assert (good, len(changes)) == (False, 1)
    assert complaint.startswith(f"{file}: {said}")


def test_json_nested_too_deeply_is_told_and_the_rest_is_decoded(file: Path) -> None:
    """It is deeper than the reader's own stack."""
    nested = b'{"a": ' * 100_000 + b"1" + b"}" * 100_000
    file.write_bytes(nested + b"\n" + message("INSERT", [{"id": "1"}]))
    good, changes, complaints = decoded(file)
    assert (good, len(changes)) == (False, 1)
    (complaint,) = complaints
    assert complaint.startswith(f"{file}:1: not a Canal message: maximum recursion depth")


@pytest.mark.parametrize("count", [1, 2000])
def test_a_full_disk_is_no_fault_of_the_input(file: Path, count: int) -> None:
    """One line about the output, whether it shows at the first full buffer or at the end."""
    file.write_bytes((message("INSERT", [{"id": "1"}]) + b"\n") * count)
    command = [sys.executable, "-m", "daemon.cli", "decode", "--format", "canal-json", str(file)]
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
            cwd=Path(__file__).resolve().parents[3],
        )  # fmt: skip
    said = "binlogd: the standard output can't be written: No space left on device\n"
    assert (found.returncode, found.stderr) == (1, said)


@pytest.mark.parametrize(
    ("closed", "said"),
    [("<&-", "<stdin>: is closed\n"), (">&-", "binlogd: the standard output is closed\n")],
)
def test_a_closed_stream_is_one_line(closed: str, said: str) -> None:
    """As a shell closes it: no traceback."""
    found = subprocess.run(
        ["sh", "-c", f'"$0" -m daemon.cli decode --format canal-json - {closed}', sys.executable],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (1, said)
