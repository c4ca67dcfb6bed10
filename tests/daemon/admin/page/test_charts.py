"""The charts of the last hour."""

from __future__ import annotations

import re

import pytest

from daemon.admin.page.charts import ceiling, chart, times, together
from daemon.admin.page.history import PipelineCourse
from daemon.admin.status.words import short

NAN = float("nan")


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (0.4, 1), (1, 1), (3, 5), (830, 1000), (1001, 2000), (4e6, 5e6)]
)
def test_an_axis_ends_at_a_round_number(most: float, top: float) -> None:
    assert ceiling(most) == top


def test_a_chart_has_both_axes_and_its_figures() -> None:
    """In words as well, for those who don't see the line."""
    text = chart("Rows a second", [NAN, 10, 830, 400], short)
    axes = re.findall("<span>([^<]*)</span>", text)
    assert axes == ["1,000", "500", "0", "1 h ago", "30 min", "now"]
    assert "<title>Rows a second: 400 now, 830 at most in the last hour</title>" in text


def test_an_axis_of_times_has_round_times() -> None:
    axes = re.findall("<span>([^<]*)</span>", times("Lag", [740.0]))
    assert axes[:3] == ["20 min", "10 min", "0.0 s"]


def test_without_a_point_nothing_is_drawn() -> None:
    assert "svg" not in chart("Lag", [NAN, NAN], short)
    assert "nothing yet" in chart("Lag", [], short)


def test_a_line_is_broken_where_nothing_is_known() -> None:
    text = chart("Lag", [1, 2, NAN, 3, 4], short)
    assert len(re.findall('<path d="M', text)) == 3 + 2  # the grid's three


def test_pipelines_together_add_their_rows_and_show_the_worst() -> None:
    one = PipelineCourse((1.0, NAN), (5.0, NAN), (1.0, NAN), (10.0, NAN))
    two = PipelineCourse((2.0, 4.0), (9.0, 1.0), (3.0, 2.0), (20.0, 5.0))
    assert together([one, two]) == PipelineCourse((3.0, 4.0), (9.0, 1.0), (3.0, 2.0), (30.0, 5.0))
    assert together([]) is None
