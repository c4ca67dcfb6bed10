"""Daemons as the page's pictures show them: each makes the document of its nth sample."""

from __future__ import annotations

from typing import Any

from tests.daemon.admin.page.documents import (
    failing,
    job,
    judged,
    quarantined,
    several,
    status,
    target,
    writing,
)

TABLES = ("orders", "order_items", "customers", "payments", "refunds", "stock", "prices", "events")


def well(number: int) -> dict[str, Any]:
    """A shop whose orders come in waves."""
    wave = [sum((40 + 30 * ((n // 6 + k) % 5)) for n in range(number)) * 10 for k in range(8)]
    targets = [target(f"lake.shop.{name}", wave[k]) for k, name in enumerate(TABLES)]
    targets[0] = writing("lake.shop.orders", wave[0])
    return status(targets, read=sum(wave))


def ill(number: int) -> dict[str, Any]:
    """The same after a bad night."""
    found = well(number)["pipelines"][0]["targets"]
    rows = {t["target"]: t["rows_written"] for t in found}
    targets = [
        writing("lake.shop.orders", rows["lake.shop.orders"]),
        failing("lake.shop.payments", "the catalog answers 503: no leader", 12_000),
        quarantined("lake.shop.prices", "lake.shop.prices: column price is stored as int, which "
                    "can't become string"),
        *(target(f"lake.shop.{name}", rows[f"lake.shop.{name}"]) for name in TABLES[1:3]),
    ]  # fmt: skip
    return status(
        targets,
        holder="lake.shop.payments",
        lag=182_000,
        letters=4,
        jobs=[job()],
        differ={"lake.shop.addresses": "ALTER TABLE addresses CONVERT TO CHARACTER SET utf8mb4"},
    )


def behind(number: int) -> dict[str, Any]:
    """Four million messages came at once; it gets through them at 900 messages a second."""
    lag = max(0, 4_000_000 - 9_000 * number)
    busy = [target(f"lake.shop.{name}", 1_100 * number) for name in TABLES]
    return status(busy, read=6_000_000, holder="lake.shop.orders", lag=lag)


def starting(number: int) -> dict[str, Any]:
    """Nothing is assigned yet, and Spark is on its way."""
    found = status([], read=0, recorded=[f"lake.shop.{name}" for name in TABLES])
    (pipeline,) = found["pipelines"]
    nothing = {"partitions": [], "lag_messages": None, "lag_seconds": None}
    pipeline |= {"assigned": False, "stage": "starting", "freshness_seconds": None} | nothing
    return judged(found | {"state": "starting"})


def stopped(number: int) -> dict[str, Any]:
    """One of three has met a bad record; the others have nothing to do."""
    found = three_idle(number)
    why = "crm.changes:0 offset 48211: crm.contacts: born: '31.02.1999' is not a date"
    found["pipelines"][1] |= {"failure": why, "stage": "ended"}
    return judged(found)


def three_idle(number: int) -> dict[str, Any]:
    """Their sources are quiet."""
    made = (status([target(f"lake.{n}.t", 5_000)], name=n) for n in ("shop", "crm", "hr"))
    return several(*made)


def many(number: int) -> dict[str, Any]:
    """Three thousand tables of a row a second, the last of two; some of them fail."""
    names = [f"lake.tenant{n % 60:02}.table_{n:04}" for n in range(2_990)]
    targets = [target(name, 10 * number * (1 + (name == names[-1]))) for name in names]
    targets += [failing(f"lake.tenant07.audit_{n}", "no space left on device") for n in range(10)]
    return status(targets, read=sum(each.rows_read for each in targets))
