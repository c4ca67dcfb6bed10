"""Sets of transactions, as servers print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases.base.gtid_sets import is_within, mariadb_set, mysql_set

SERVERS = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "aaaaaaaa-71ca-11e1-9e33-c80aa9429562")
TAGS = ("", "audit")

Members = frozenset[tuple[str, str, int]]

members = st.frozensets(
    st.tuples(st.sampled_from(SERVERS), st.sampled_from(TAGS), st.integers(1, 12)), max_size=30
)


def printed(found: Members, data: st.DataObject) -> str:
    """As a server may: spans of one as a number, tags behind their server, line ends between."""
    groups = []
    for server in SERVERS:
        parts: list[str] = []
        for tag in TAGS:
            numbers = sorted(n for s, t, n in found if (s, t) == (server, tag))
            if numbers and tag:
                parts.append(tag)
            while numbers:
                first = last = numbers.pop(0)
                while numbers and numbers[0] == last + 1 and data.draw(st.booleans()):
                    last = numbers.pop(0)
                parts.append(f"{first}-{last}" if last > first else str(first))
        if parts:
            groups.append(":".join([data.draw(st.sampled_from((server, server.upper()))), *parts]))
    return ",\n".join(groups)


@given(members, members, st.data())
def test_a_set_is_within_another_where_each_of_its_members_is(
    one: Members, other: Members, data: st.DataObject
) -> None:
    """However both are printed."""
    found = is_within(mysql_set(printed(one, data)), mysql_set(printed(other, data)))
    assert found == (one <= other)


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        ("0-1-7", "0-1-7", True),
        ("0-1-7", "0-1-8,5-2-1", True),
        ("0-1-8", "0-1-7", False),
        ("0-1-7", "0-2-9", False),  # of another server: its numbers tell nothing of this one's
        ("0-1-7, 5-2-1", "0-1-7", False),
        ("", "", True),
    ],
)
def test_of_mariadb_the_last_number_of_a_domain_and_server_counts(
    inner: str, outer: str, within: bool
) -> None:
    assert is_within(mariadb_set(inner), mariadb_set(outer)) == within


@pytest.mark.parametrize("text", ["nonsense", "0-1", "0-1-x"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        mariadb_set(text)
