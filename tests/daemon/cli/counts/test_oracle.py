"""Whatever happens to the records of a log: it never agrees where a change is missing."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from offsets.position import TopicPartition
from tests.daemon.cli.counts.debezium_log import MINUTE, RANGE, DebeziumLog, cells

T, U, ENDS = (TopicPartition(name, 0) for name in ("shop.t", "shop.u", "shop.transaction"))

TABLES = {"shop.t": T, "shop.u": U}

TRANSACTIONS = st.lists(
    st.tuples(
        st.integers(0, 6),  # the minute of its begin: a change may be later, or in the next one
        st.lists(
            st.tuples(st.sampled_from([*TABLES]), st.sampled_from("IUD"), st.integers(0, 1)),
            max_size=4,
        ),
        st.booleans(),  # the reader restarts inside it, and numbers again
    ),
    min_size=1,
    max_size=6,
)


class World:
    """Transactions, written as a reader does; some records get lost, others come twice."""

    def __init__(self, spread: bool, lost: set[int], twice: set[int]) -> None:
        self.log = DebeziumLog(T, U, ENDS) if spread else DebeziumLog(T)
        self.spread, self._lost, self._twice = spread, lost, twice
        self.truth: Counter[tuple[str, int, str]] = Counter()
        self._number = 0
        self.blind = False
        """A reader numbered again, and what tells it is lost: the END is as wrong as the rows."""
        self.missing = False
        """Of a transaction that left something a change is lost."""

    def write(self, transactions: list[tuple[int, list[tuple[str, str, int]], bool]]) -> None:
        self.log.at(-1)
        self._whole("before")
        for number, (minute, rows, restarts) in enumerate(transactions):
            self._transaction(f"x{number}", minute, rows, restarts)
        self.log.at(60)
        self._whole("after")

    def _whole(self, id_: str) -> None:
        ends = ENDS if self.spread else T
        self.log.begin(id_, ends)
        for table, place in TABLES.items():
            self.log.row(id_, 1, table, to=place if self.spread else T)
        self.log.end(id_, dict.fromkeys(TABLES, 1), ends)

    def _kept(self) -> int:
        """How often the next record comes."""
        self._number += 1
        return 0 if self._number in self._lost else 1 + (self._number in self._twice)

    def _transaction(
        self, id_: str, minute: int, rows: list[tuple[str, str, int]], restarts: bool
    ) -> None:
        ends = ENDS if self.spread else T
        numbers: Counter[str] = Counter()
        written, lost, begins = 0, [], True
        self.log.at(minute)
        for _ in range(times := self._kept()):
            self.log.begin(id_, ends)
        begins &= times > 0
        for at, (table, op, later) in enumerate(rows):
            if restarts and at == len(rows) // 2:
                numbers.clear()
                for _ in range(times := self._kept()):
                    self.log.begin(id_, ends)
                begins &= times > 0
            numbers[table] += 1
            self.log.at(minute + later)
            for _ in range(times := self._kept()):
                self.log.row(id_, numbers[table], table, op, TABLES[table] if self.spread else T)
            written += times
            lost.append(not times)
            if MINUTE + minute + later in RANGE:
                self.truth[table, minute + later, op] += 1
        for _ in range(times := self._kept()):
            self.log.end(id_, dict(numbers), ends)
        written += times
        self.blind |= restarts and not begins
        # Of one that left nothing but a BEGIN nobody can know.
        self.missing |= bool(written) and any(
            gone and MINUTE + minute + row[2] in RANGE for gone, row in zip(lost, rows, strict=True)
        )
        if not written:
            for table, _, later in rows:
                for op in "IUD":
                    self.truth.pop((table, minute + later, op), None)


@settings(max_examples=400, deadline=None)
@given(
    TRANSACTIONS,
    st.booleans(),
    st.sets(st.integers(1, 30), max_size=3),
    st.sets(st.integers(1, 30), max_size=3),
)
def test_it_agrees_only_with_the_truth(
    transactions: list[tuple[int, list[tuple[str, str, int]], bool]],
    spread: bool,
    lost: set[int],
    twice: set[int],
) -> None:
    """Records that are lost, repeated, spread over topics; readers that restart; minutes out of
    order. A transaction that left nothing but a BEGIN is an exception, and one in which a reader
    began to number again where also the BEGIN that tells it is lost."""
    world = World(spread, lost, twice)
    world.write(transactions)
    reports = {table: world.log.report(f"lake.{table}") for table in TABLES}
    if world.blind:
        return
    if all(each.verdict == "agrees" for each in reports.values()):
        assert not world.missing
        scanned = world.log.scan()
        for table in TABLES:
            found = cells(scanned, f"lake.{table}")
            for minute in range(len(RANGE)):
                true = tuple(world.truth[table, minute, op] for op in "IUD")
                assert found.get(minute, (0, 0, 0, 0)) == (*true, sum(true))
    elif not lost | twice and not any(restarts for *_, restarts in transactions):
        raise AssertionError(f"nothing is missing, and yet: {reports}")
