"""The tables of the demo's shop: their columns as MySQL has them, and how a value is made up.

The order is the order of their heat, hottest first. Values are texts, as Canal writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from demo.clock import Clock


@dataclass(slots=True)
class World:
    """What makers of values draw from: chance, the time, and the names others gave out."""

    draw: Callable[[], float]
    """``Random.random``, by far its fastest method: everything here comes from it."""
    clock: Clock
    numbers: dict[str, int]
    """The last number given out by each counter."""
    skus: list[str]
    """Products that were ever made, for columns that refer to one."""

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``; three times as fast as ``randrange``."""
        return int(self.draw() * limit)

    def next(self, counter: str) -> str:
        """Give out the next number of a counter."""
        number = self.numbers[counter] = self.numbers.get(counter, 0) + 1
        return str(number)

    def some(self, counter: str) -> str:
        """A number that a counter gave out, recent ones more often (1 when it gave none)."""
        last = self.numbers.get(counter, 1)
        return str(last - int(last * self.draw() ** 3))


Make = Callable[[World], str | None]


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, its MySQL type, how a value is made."""

    name: str
    mysql_type: str
    make: Make


@dataclass(frozen=True, slots=True)
class Growth:
    """A column that an ALTER TABLE adds in mid-stream, and what rows stored before it show."""

    field: Field
    definition: str
    """What follows the type in the statement."""
    default: str | None
    after: float
    """When: the share of all changes that came before."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first ``keys`` of its fields are its key (0: it has none).

    ``ops`` are the shares of inserts, updates, deletes and key changes (0 where it's not given).
    """

    name: str
    keys: int
    ops: tuple[float, float, float, float]
    fields: tuple[Field, ...]
    growth: Growth | None = None
    shifts: bool = False
    """Its key changes move a run of consecutive numbers in the key's last part up by one, in one
    statement: 8 becomes 9, then 7 becomes 8 (``UPDATE .. SET n = n + 1 .. ORDER BY n DESC``)."""


_TEXTS = (
    "plain", "", " leading and trailing ", "Ünïcödé ß", "日本語の文", "emoji 🛒🧾", "null", "0",
    "it's \"quoted\"", "back\\slash \\n", "line\nbreak\ttab", "e\u0301 combined",
    "\u2028separator", "\x01control", "long " + "x" * 900,
)  # fmt: skip
_CITIES = ("Berlin", "Göteborg", "São Paulo", "東京", "Łódź", "Paris", "Wien", "Zürich")
_MAKERS = ("SKU", "Größe", "品番", "it's")
_STATUS = ("new", "paid", "packed", "sent", "done", "void")
_DATES = ("1000-01-01", "1582-10-10", "1969-12-31", "9999-12-31")
_DOUBLES = ("0.0", "-0.0", "1.0E10", "-1.0E-5", "1.7976931348623157E308", "4.9E-324", "0.1")
_FLOATS = ("0.0", "0.1", "-3.25", "1.0E10", "3.4028235E38", "1.4E-45", "16777216")


def _one_of(values: tuple[str, ...]) -> Make:
    count = len(values)
    return lambda world: values[int(world.draw() * count)]


def _text(world: World) -> str:
    if world.draw() < 0.1:
        return _TEXTS[world.below(len(_TEXTS))]
    return f"text {world.below(100_000)} of some length"


def _or_null(share: float, make: Make) -> Make:
    return lambda world: None if world.draw() < share else make(world)


def _whole(low: int, high: int) -> Make:
    """Numbers of a range, its ends more often than by chance."""
    span, first, last = high - low + 1, str(low), str(high)

    def make(world: World) -> str:
        drawn = world.draw()
        if drawn < 0.008:
            return first if drawn < 0.004 else last
        return str(low + int(world.draw() * span))

    return make


def _decimal(digits: int, scale: int, limit: int) -> Make:
    """Decimals up to a limit, and now and then the largest that fits."""
    most = "9" * (digits - scale) + "." + "9" * scale
    unit = 10**scale

    def make(world: World) -> str:
        drawn = world.draw()
        if drawn < 0.008:
            return most if drawn < 0.004 else "-" + most
        value = int(world.draw() * limit * unit)
        return f"{value // unit}.{value % unit:0{scale}d}"

    return make


def _near(values: tuple[str, ...], limit: int, step: int) -> Make:
    """Floating-point numbers as Java prints them, exact in binary, or one of the odd ones."""
    odd = len(values)

    def make(world: World) -> str:
        if world.draw() < 0.02:
            return values[world.below(odd)]
        return str(world.below(limit * step) / step)

    return make


def _number(counter: str) -> Make:
    return lambda world: world.next(counter)


def _ref(counter: str) -> Make:
    return lambda world: world.some(counter)


def _sku(world: World) -> str:
    skus = world.skus
    return skus[int(len(skus) * world.draw() ** 2)] if skus else "SKU-0"


def _new_sku(world: World) -> str:
    number = int(world.next("product"))
    sku = f"{_MAKERS[number % 4]}-{number * 7919 % 1_000_003}"
    world.skus.append(sku)
    return sku


def _uuid(world: World) -> str:
    draw = world.draw
    text = f"{int(draw() * 2**52):016x}{int(draw() * 2**52):016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _day(world: World) -> str:
    if world.draw() < 0.01:
        return _DATES[world.below(len(_DATES))]
    return f"{1950 + world.below(80)}-{1 + world.below(12):02d}-{1 + world.below(28):02d}"


def _now(digits: int) -> Make:
    if digits == 0:
        return lambda world: world.clock.text
    return lambda world: f"{world.clock.text}.{world.below(10**digits):0{digits}d}"


def _loyalty(world: World) -> str:
    return str(int(world.draw() * 2**64))


_big = "bigint(20)"
_unsigned_big = "bigint(20) unsigned"
_flag = _one_of(("0", "1"))

TABLES: tuple[Table, ...] = (
    Table("click_log", 0, (0.97, 0.02, 0.01, 0), (
        Field("session_id", "char(36)", _uuid),
        Field("customer_id", _unsigned_big, _or_null(0.5, _ref("customer"))),
        Field("url", "varchar(500)", _text),
        Field("took_ms", "float", _near(_FLOATS, 5000, 8)),
        Field("at", "datetime(3)", _now(3)),
    )),
    Table("sessions", 1, (0.25, 0.55, 0.198, 0.002), (
        Field("id", "char(36)", _uuid),
        Field("customer_id", _unsigned_big, _or_null(0.4, _ref("customer"))),
        Field("ip", "varchar(45)", _text),
        Field("hits", "int(10) unsigned", _whole(0, 2**32 - 1)),
        Field("started_at", "datetime(3)", _now(3)),
        Field("last_seen", "timestamp", _now(0)),
    )),
    Table("orders", 1, (0.4, 0.59, 0.009, 0.001), (
        Field("id", _big, _number("order")),
        Field("customer_id", _unsigned_big, _ref("customer")),
        Field("status", "varchar(16)", _one_of(_STATUS)),
        Field("channel", "tinyint(4)", _whole(-128, 127)),
        Field("total", "decimal(12,2)", _decimal(12, 2, 5000)),
        Field("placed_at", "datetime(6)", _now(6)),
        Field("note", "text", _or_null(0.6, _text)),
    ), Growth(
        Field("gift_note", "varchar(200)", _or_null(0.5, _text)), "NULL", None, 0.35,
    )),
    Table("order_items", 2, (0.6, 0.3, 0.07, 0.03), (
        Field("order_id", _big, _ref("order")),
        Field("line_no", "smallint(5) unsigned", lambda world: str(1 + world.below(12))),
        Field("sku", "varchar(64)", _sku),
        Field("quantity", "mediumint(9)", _whole(-8388608, 8388607)),
        Field("price", "decimal(10,2)", _decimal(10, 2, 900)),
        Field("discount", "decimal(5,4)", _or_null(0.7, _decimal(5, 4, 1))),
    ), shifts=True),
    Table("inventory", 2, (0.1, 0.86, 0.035, 0.005), (
        Field("warehouse", "varchar(8)", _one_of(("N", "S", "ÖST", "west", "West"))),
        Field("sku", "varchar(64)", _sku),
        Field("quantity", "int(11)", _whole(-2147483648, 2147483647)),
        Field("reserved", "mediumint(8) unsigned", _whole(0, 16777215)),
        Field("counted_at", "timestamp(3)", _now(3)),
    )),
    Table("payments", 1, (0.75, 0.2, 0.05, 0), (
        Field("id", _unsigned_big, _number("payment")),
        Field("order_id", _big, _ref("order")),
        Field("amount", "decimal(20,6)", _decimal(20, 6, 9000)),
        Field("fee", "float", _or_null(0.1, _near(_FLOATS, 50, 16))),
        Field("method", "varchar(20)", _one_of(("card", "cash", "Überweisung", "wire"))),
        Field("paid_at", "datetime", _now(0)),
    )),
    Table("customers", 1, (0.4, 0.55, 0.04, 0.01), (
        Field("id", _unsigned_big, _number("customer")),
        Field("name", "varchar(120)", _text),
        Field("email", "varchar(200)", _or_null(0.2, _text)),
        Field("balance", "decimal(12,2)", _decimal(12, 2, 10000)),
        Field("score", "double", _or_null(0.1, _near(_DOUBLES, 1000, 64))),
        Field("loyalty_no", _unsigned_big, _or_null(0.3, _loyalty)),
        Field("vip", "tinyint(1)", _flag),
        Field("born", "date", _or_null(0.2, _day)),
        Field("created_at", "datetime", _now(0)),
        Field("updated_at", "timestamp", _now(0)),
    )),
    Table("shipments", 1, (0.5, 0.45, 0.04, 0.01), (
        Field("id", "int(10) unsigned", _number("shipment")),
        Field("order_id", _big, _ref("order")),
        Field("carrier", "varchar(20)", _one_of(("post", "bike", "ship", "鉄道"))),
        Field("weight", "double", _near(_DOUBLES, 40, 1024)),
        Field("sent_on", "date", _or_null(0.3, _day)),
        Field("arrived_at", "datetime(6)", _or_null(0.5, _now(6))),
    )),
    Table("products", 1, (0.25, 0.7, 0.04, 0.01), (
        Field("sku", "varchar(64)", _new_sku),
        Field("name", "varchar(120)", _text),
        Field("category_id", "int(11)", _ref("category")),
        Field("price", "decimal(10,2)", _decimal(10, 2, 900)),
        Field("weight", "float", _or_null(0.2, _near(_FLOATS, 30, 32))),
        Field("active", "tinyint(1)", _flag),
        Field("description", "mediumtext", _or_null(0.3, _text)),
    ), Growth(
        Field("rating", "int(11)", _whole(-5, 5)), "NOT NULL DEFAULT 0", "0", 0.6,
    )),
    Table("reviews", 1, (0.7, 0.2, 0.1, 0), (
        Field("id", _big, _number("review")),
        Field("sku", "varchar(64)", _sku),
        Field("stars", "tinyint(3) unsigned", _whole(0, 255)),
        Field("body", "longtext", _or_null(0.1, _text)),
        Field("written_at", "timestamp(6)", _now(6)),
    )),
    Table("addresses", 2, (0.45, 0.45, 0.07, 0.03), (
        Field("customer_id", _unsigned_big, _ref("customer")),
        Field("kind", "varchar(10)", _one_of(("home", "work", "büro", "gift", ""))),
        Field("street", "varchar(200)", _text),
        Field("city", "varchar(80)", _one_of(_CITIES)),
        Field("lat", "double", _or_null(0.3, _near(_DOUBLES, 90, 4096))),
    )),
    Table("price_history", 2, (0.9, 0.05, 0.05, 0), (
        Field("sku", "varchar(64)", _sku),
        Field("changed_at", "datetime(6)", _now(6)),
        Field("price", "decimal(10,2)", _decimal(10, 2, 900)),
        Field("valid_from", "date", _day),
    )),
    Table("coupons", 1, (0.35, 0.4, 0.2, 0.05), (
        Field("code", "varchar(12)", lambda world: f"C{world.below(4000)}"),
        Field("percent", "decimal(5,2)", _decimal(5, 2, 100)),
        Field("uses", "smallint(5)", _whole(-32768, 32767)),
        Field("valid_to", "date", _or_null(0.4, _day)),
        Field("note", "tinytext", _or_null(0.5, _text)),
    )),
    Table("categories", 1, (0.2, 0.75, 0.04, 0.01), (
        Field("id", "int(11)", _number("category")),
        Field("name", "varchar(80)", _text),
        Field("parent_id", "int(11)", _or_null(0.4, _ref("category"))),
    )),
    Table("warehouses", 1, (0.1, 0.85, 0.04, 0.01), (
        Field("id", "tinyint(3) unsigned", lambda world: str(world.below(256))),
        Field("city", "varchar(80)", _one_of(_CITIES)),
        Field("capacity", "int(10) unsigned", _whole(0, 2**32 - 1)),
        Field("opened_at", "timestamp", _now(0)),
    )),
)  # fmt: skip
