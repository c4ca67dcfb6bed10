"""What of the targets a reader wants to see, as the page's address says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode

SORTS = {
    "state": "what is not well first",
    "name": "name",
    "lag": "lag",
    "rows": "rows per second",
    "write": "seconds of a write",
    "buffered": "bytes in hand",
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
