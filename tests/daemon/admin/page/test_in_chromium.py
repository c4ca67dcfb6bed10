"""The page as people see it: in a real browser, with and without its script.

``make pictures`` writes what these tests see into ``docs/pictures``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from changes.model.printable import printable
from daemon.admin.page.targets import target_address
from daemon.admin.web import WebServer
from tests.daemon.admin.page.documents import failing, job, quarantined, status, target, writing
from tests.daemon.admin.page.test_page import HOSTILE
from tests.needs import tool

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]

WIDE, PHONE = {"width": 1200, "height": 800}, {"width": 390, "height": 800}
PICTURES = os.environ.get("PICTURES", "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=tool("chromium"), args=["--no-sandbox"])
        yield made
        made.close()


class Daemon:
    """The web server of a daemon whose status the test sets."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self.server = WebServer(("127.0.0.1", 0), lambda: self.status)

    def shows(self, made: Callable[[int], dict[str, Any]], samples: int = 90) -> str:
        """Have a past of so many samples, then ``made(samples)``; the page's address."""
        for number in range(samples + 1):
            self.status = made(number) | {"uptime_seconds": 50_000.0 + 10 * number}
            self.server.desk.sample()
        self.server.start()
        host, port = self.server.address
        return f"http://{host}:{port}"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    yield made
    made.server.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page. At the end: no error in the console, no dialog, nothing that the policy met."""
    troubles: list[str] = []
    contexts = []

    def opened(address: str, **options: Any) -> Page:
        context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def picture(page: Page, name: str) -> None:
    """Keep what is seen, where ``make pictures`` wants it."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", animations="disabled")


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


def many(number: int) -> dict[str, Any]:
    """Three thousand tables, some of which fail."""
    targets = [target(f"lake.tenant{n % 60:02}.table_{n:04}", n * number) for n in range(2_990)]
    targets += [failing(f"lake.tenant07.audit_{n}", "no space left on device") for n in range(10)]
    return status(targets)


def test_all_well_is_seen_at_a_glance(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """In light and in dark, with the rates on the way."""
    address = daemon.shows(well)
    for scheme, back in (("light", "rgb(251, 251, 250)"), ("dark", "rgb(20, 23, 27)")):
        page = opened(address, color_scheme=scheme)
        expect(page.get_by_role("status")).to_have_text("all is well")
        expect(page.locator("body")).to_have_css("background-color", back)
        expect(page.locator(".stage").nth(1)).to_contain_text("messages/s")
        expect(page.locator(".stage.flows")).to_have_count(4)
        picture(page, f"page-well-{scheme}")


def test_what_is_ill_says_what_to_do(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """What holds the frontier, and a command for all that waits."""
    page = opened(daemon.shows(ill))
    expect(page.get_by_role("status")).to_have_text("4 things are not well")
    expect(page.locator(".stage").nth(3)).to_contain_text("lake.shop.payments holds 182.0k")
    retry = page.locator("code", has_text="binlogd tables retry lake.shop.prices")
    expect(retry).to_have_count(1)
    expect(page.locator("#errors tbody tr")).to_have_count(2)
    page.set_viewport_size({"width": 1200, "height": 1500})
    picture(page, "page-ill")


def test_three_thousand_targets_are_searched_while_one_types(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    """And the address says what is shown, so it can be sent to somebody."""
    page = opened(daemon.shows(many, samples=2))
    expect(page.locator("#targets tbody tr")).to_have_count(100)
    expect(page.locator("#targets tbody tr").first).to_contain_text("no space left")
    page.get_by_role("searchbox").press_sequentially("audit_3")
    expect(page.locator("#targets tbody tr")).to_have_count(1)
    assert "q=audit_3" in page.url
    page.get_by_role("searchbox").fill("")
    page.get_by_label("only what is not well").check()
    expect(page.locator("#targets tbody tr")).to_have_count(10)
    page.get_by_label("only what is not well").uncheck()
    page.get_by_role("combobox").select_option("rows")
    expect(page.locator("#targets tbody tr").first).to_contain_text("table_2989")
    picture(page, "page-many")


def test_it_stays_up_to_date_by_itself(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """What was opened stays open, what was typed stays typed; a daemon that is gone is told."""
    page = opened(daemon.shows(well, samples=2))
    page.locator("summary").click()
    daemon.status = ill(3)
    expect(page.get_by_role("status")).to_have_text("4 things are not well")
    expect(page.locator("details")).to_have_attribute("open", "")


def test_without_a_script_it_is_a_document_that_reloads(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    """The form is sent, links lead through the pages."""
    page = opened(daemon.shows(many, samples=2), java_script_enabled=False)
    page.get_by_role("searchbox").fill("tenant07")
    page.get_by_role("combobox").select_option("name")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#targets tbody tr")).to_have_count(60)
    page.get_by_role("link", name="lake.tenant07.audit_0").click()
    expect(page.locator("#target h2")).to_contain_text("lake.tenant07.audit_0")


def test_one_targets_last_hour(daemon: Daemon, opened: Callable[..., Page]) -> None:
    page = opened(daemon.shows(well, samples=300) + target_address("shop", "lake.shop.orders"))
    expect(page.locator("svg.spark")).to_have_count(3)
    expect(page.locator("figcaption").first).to_contain_text("rows/s")
    picture(page, "page-target")


def test_on_a_phone_nothing_is_wider_than_the_screen(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    """Tables scroll in themselves."""
    page = opened(daemon.shows(ill), viewport=PHONE, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    picture(page, "page-phone")


def test_hostile_names_are_names(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """What the browser shows is the name; none of it runs, or turns what stands beside it."""
    page = opened(
        daemon.shows(
            lambda n: status(
                [failing(name, name, n) for name in HOSTILE], holder=HOSTILE[0], lag=9
            ),
            samples=2,
        )
    )
    shown = page.locator("#targets tbody tr td:first-child bdi").all_text_contents()
    assert sorted(shown) == sorted(map(printable, HOSTILE))
    for name in shown:
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.locator("#target h2 bdi").first).to_have_text(name)
        page.go_back()
