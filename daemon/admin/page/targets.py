"""The table of targets: searched, sorted, a hundred at a time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode

from daemon.admin.page.format import Html, join, name, tag
from daemon.admin.page.history import History
from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition
from daemon.admin.status.health import of_target
from daemon.admin.status.words import behind, duration, short, size
from settings.counted import counted

# What of the targets a reader wants to see, as the page's address says it. Pure.

SORTS = {
    "state": "what is not well first",
    "name": "name",
    "lag": "lag",
    "rows": "rows per second",
    "write": "seconds of a write",
    "buffered": "bytes waiting",
}
"""The orders of the targets, by their name in the address."""

LONGEST_SEARCH = 300
"""Characters. A table's name is shorter."""


@dataclass(frozen=True, slots=True)
class View:
    """``search``: a part of the name, in any case. ``ill``: only targets that are not well."""

    search: str = ""
    sort: str = "state"
    ill: bool = False
    page: int = 1

    @classmethod
    def of(cls, query: str) -> View:
        """From an address. Whatever is unknown there counts as not said."""
        found = {key: values[-1] for key, values in parse_qs(query).items()}
        page, sort = found.get("page", ""), found.get("sort", "")
        return cls(
            search=found.get("q", "")[:LONGEST_SEARCH].strip(),
            sort=sort if sort in SORTS else "state",
            ill=found.get("ill") == "1",
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
        )

    def address(self, **changes: Any) -> str:
        """The address of this view with changes, relative to the page's own."""
        view = replace(self, **changes)
        said = {"q": view.search, "sort": view.sort, "ill": int(view.ill), "page": view.page}
        usual = {"q": "", "sort": "state", "ill": 0, "page": 1}
        return "/?" + urlencode({k: v for k, v in said.items() if v != usual[k]})


def target_address(pipeline: str, target: str) -> str:
    """The address of one target's page."""
    return "/target?" + urlencode({"pipeline": pipeline, "target": target})


def target_of(query: str) -> tuple[str, str]:
    """The pipeline and target that an address names; empty where it names none."""
    found = parse_qs(query)
    return found.get("pipeline", [""])[-1], found.get("target", [""])[-1]


ON_A_PAGE = 100
"""Rows. More make a document that a phone scrolls badly, and that costs the daemon more to make."""


@dataclass(frozen=True, slots=True)
class Row:
    """A target as the table shows it. ``worst``: of what is not well with it."""

    pipeline: str
    target: doc.Target
    worst: Condition | None
    rate: float | None

    @property
    def is_ill(self) -> bool:
        """Whether somebody has to act."""
        return self.worst is not None and self.worst.level == "ill"

    @property
    def why(self) -> str:
        """What is not well, empty where it is."""
        return self.worst.line if self.worst else ""


def rows_of(status: doc.Status, history: History) -> list[Row]:
    """All targets of a status document."""
    paused = status["paused_targets"]
    return [
        Row(
            p["pipeline"],
            t,
            next(of_target(p, t, paused.get(t["target"])), None),
            history.rows_rate(p["pipeline"], t["target"]),
        )
        for p in status["pipelines"]
        for t in p["targets"]
    ]


def chosen(rows: Iterable[Row], view: View) -> list[Row]:
    """The rows that a view shows, in its order, on all its pages."""
    search = view.search.casefold()
    found = [
        row
        for row in rows
        if search in row.target["target"].casefold() and (row.is_ill or not view.ill)
    ]
    return sorted(found, key=_ORDERS[view.sort])


def _waits(target: doc.Target) -> int:
    kept = target["quarantine"] or target["away"]
    spilled: int = kept["bytes"] if kept else 0
    return int(target["buffered_bytes"]) + int(target["staged_bytes"]) + spilled


def _lag(row: Row) -> float:
    return -(row.target["lag_seconds"] or 0.0)


def _name(row: Row) -> str:
    return str(row.target["target"])


def _write(row: Row) -> float:
    write = row.target["write"]
    return -write["age_seconds"] if write else 0.0


_ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "state": lambda row: (not row.is_ill, row.worst is None, _lag(row), _name(row)),
    "name": _name,
    "lag": lambda row: (_lag(row), _name(row)),
    "rows": lambda row: (-(row.rate or 0.0), _name(row)),
    "write": lambda row: (_write(row), _name(row)),
    "buffered": lambda row: (-_waits(row.target), _name(row)),
}


def targets_section(rows: list[Row], view: View) -> Html:
    """Heading, choice, table."""
    ill = sum(row.is_ill for row in rows)
    found = chosen(rows, view)
    pages = max(1, -(-len(found) // ON_A_PAGE))
    page = min(view.page, pages)
    shown = found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
    return tag(
        "section",
        tag("h2", "Targets ", tag("small", f"{len(rows):,}, not well: {ill:,}")),
        tag("p", _counted(found, page, pages, view), class_="count"),
        tag("div", _table(shown), class_="wide"),
        id="targets",
    )


def choice(view: View) -> Html:
    """The form that searches and sorts. It works without a script, too."""
    return tag(
        "form",
        tag(
            "input",
            type="search",
            name="q",
            value=view.search,
            placeholder="Search targets",
            aria_label="Search targets",
        ),
        tag(
            "select",
            *(
                tag("option", f"by {text}", value=key, selected=key == view.sort)
                for key, text in SORTS.items()
            ),
            name="sort",
            aria_label="Order",
        ),
        tag(
            "label",
            tag("input", type="checkbox", name="ill", value="1", checked=view.ill),
            " only what is not well",
        ),
        tag("button", "Show"),
        method="get",
        action="/",
        id="choice",
    )


def _counted(found: list[Row], page: int, pages: int, view: View) -> Html:
    first = (page - 1) * ON_A_PAGE
    last = min(len(found), page * ON_A_PAGE)
    text = f"{first + 1:,} to {last:,} of {len(found):,}" if found else "none"
    before = tag("a", "previous", href=view.address(page=page - 1)) if page > 1 else None
    after = tag("a", "next", href=view.address(page=page + 1)) if page < pages else None
    return join(text, " " if before else None, before, " " if after else None, after)


def _table(rows: list[Row]) -> Html:
    head = (
        "target",
        "state",
        "lag",
        "freshness",
        "rows/s",
        "write under way",
        "bytes waiting",
        "not well",
    )
    return tag(
        "table",
        tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head))),
        tag("tbody", *map(_row, rows)),
    )


def _row(row: Row) -> Html:
    t = row.target
    write = t["write"]
    flying = f"{counted(write['rows'], 'row')}, {duration(write['age_seconds'])}" if write else "-"
    return tag(
        "tr",
        tag("td", tag("a", name(t["target"]), href=target_address(row.pipeline, t["target"]))),
        tag("td", t["phase"]),
        tag("td", behind(t)),
        tag("td", duration(t["freshness_seconds"])),
        tag("td", short(row.rate), class_="n"),
        tag("td", flying),
        tag("td", size(_waits(t)), class_="n"),
        tag("td", name(row.why) if row.why else "-", class_="why"),
        class_="ill" if row.is_ill else None,
    )
