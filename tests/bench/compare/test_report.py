"""What is told of a comparison: ratios to binlogd in the same run, and no figure without one."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from bench.compare.contestants import CONTESTANTS, turns
from bench.compare.report import Entry, Run, add_ratios, percentile, show, write
from bench.compare.workloads import workloads


def run(rows_per_s: float, p50_s: float | None = None) -> Run:
    """A run of a million rows."""
    return Run(1e6 / rows_per_s, 1_000_000, 1_000_000, rows_per_s, 20.0, 300.0, 2_000.0, 1.0, p50_s)


def test_ratios_are_run_by_run() -> None:
    """The second run of one beside the second of binlogd's: what slows the machine slows both."""
    results = {
        "wide": {
            "binlogd": Entry(True, [run(100), run(50), run(80)]),
            "expert": Entry(True, [run(50), run(10), run(20)]),
        }
    }
    add_ratios(results)
    assert results["wide"]["expert"].ratios["rows_per_s"] == (0.2, 0.25, 0.5)
    assert results["wide"]["binlogd"].ratios["rows_per_s"] == (1.0, 1.0, 1.0)


def test_where_nothing_is_written_the_flow_without_a_sink_is_the_measure() -> None:
    """For the limit and other consumers."""
    results = {
        "consume": {
            "bare-consume": Entry(None, [run(300)]),
            "binlogd-no-sink": Entry(None, [run(100)]),
        }
    }
    add_ratios(results)
    assert results["consume"]["bare-consume"].ratios["rows_per_s"] == (3.0, 3.0, 3.0)


def test_without_binlogd_there_are_no_ratios() -> None:
    """As where it was not asked for."""
    results = {"wide": {"binlogd": Entry(), "expert": Entry(True, [run(50)])}}
    add_ratios(results)
    assert results["wide"]["expert"].ratios == {}


def test_a_figure_that_neither_has_is_no_ratio() -> None:
    """Freshness, outside of the live workload."""
    results = {"wide": {"binlogd": Entry(True, [run(100)])}}
    add_ratios(results)
    assert "p50_s" not in results["wide"]["binlogd"].ratios


def test_percentiles() -> None:
    """Of 1 to 100."""
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [51, 96, 100, 100]


def test_the_file_has_a_reason_where_there_is_no_figure(tmp_path: Path) -> None:
    """And the scale, the machine, the versions."""
    path = tmp_path / "var" / "compare.json"
    write(path, 0.1, {"wide": {"naive": Entry(False, [], "its tables differ: t0 ...")}})
    told = json.loads(path.read_bytes())
    assert told["workloads"]["wide"]["naive"] == {
        "equal": False, "runs": [], "reason": "its tables differ: t0 ...", "ratios": {},
    }  # fmt: skip
    assert told["scale"] == 0.1
    assert told["machine"]["versions"]["pyspark"]


def test_the_table_tells_medians_and_ratios() -> None:
    """Of who has figures; the reasons of the others below it."""
    entries = {
        "binlogd": Entry(True, [run(100), run(200), run(300)]),
        "expert": Entry(True, [run(50)]),
        "naive": Entry(None, [], "nothing was visible after 60 s"),
    }
    add_ratios({"wide": entries})
    out = io.StringIO()
    show(Console(file=out, width=160), workloads(1.0)["wide"], entries)
    text = out.getvalue()
    assert "200 (1.00)" in text
    assert "50.00 (0.50)" in text
    assert "naive: nothing was visible after 60 s" in text


def test_contestants_take_turns() -> None:
    """binlogd, the expert, and again; who has one run has it in the first round."""
    names = ("binlogd", "expert", "naive")
    order = [(c.name, number) for c, number in turns([CONTESTANTS[n] for n in names], 2)]
    assert order == [
        ("binlogd", 0), ("expert", 0), ("naive", 0), ("binlogd", 1), ("expert", 1),
    ]  # fmt: skip
