"""The page as people see it: in a real browser, with and without its script.

``make pictures`` writes what these tests see into ``docs/pictures``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from changes.model.printable import printable
from daemon.admin.page.document import Sources
from daemon.admin.page.targets import target_address
from daemon.admin.page.verified import Verified
from daemon.admin.web import WebServer
from tests.daemon.admin.page.documents import NOW_MS, failing, status
from tests.daemon.admin.page.scenes import behind, ill, many, starting, stopped, three_idle, well
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


CONFIGURATION = json.dumps({"daemon": {"processors": 3}, "log": {"level": "info"}}, indent=1)
LOGGED = [
    "2026-09-21T14:13:20Z warning sink_unavailable reason=503: no leader attempt=6",
    "2026-09-21T14:11:45Z warning sink_unavailable reason=503: no leader attempt=5",
]
VERIFIED = [
    Verified("lake.shop.stock", False, "3 rows differ", 48_000, NOW_MS - 7_000_000, "v-1", 1.0),
    Verified("lake.shop.orders", True, "equal", 1_250_000, NOW_MS - 7_000_000, "v-1", 1.0),
]


class Daemon:
    """The web server of a daemon whose status the test sets."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        sources = Sources(lambda: CONFIGURATION, lambda: VERIFIED, lambda target: LOGGED)
        address = "127.0.0.1", 0
        self.server = WebServer(address, lambda: self.status, sources=sources)

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


def test_all_well_is_seen_at_a_glance(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """In light and in dark, with the rates on the way."""
    address = daemon.shows(well)
    for scheme, back in (("light", "rgb(251, 251, 250)"), ("dark", "rgb(20, 23, 27)")):
        page = opened(address, color_scheme=scheme)
        expect(page.get_by_role("status")).to_have_text("all is well")
        expect(page.locator("body")).to_have_css("background-color", back)
        expect(page.locator(".stage").nth(1)).to_contain_text("messages/s")
        expect(page.locator("#hour svg.line")).to_have_count(3)
        expect(page.locator("#hour .x").first).to_have_text("1 h ago30 minnow")
        assert page.title() == "binlogd"
        expect(page.locator(".stage.flows")).to_have_count(4)


def test_what_is_ill_says_what_to_do(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """What holds the frontier, and a command for all that waits."""
    page = opened(daemon.shows(ill))
    expect(page.get_by_role("status")).to_have_text("4 things are not well")
    expect(page.locator(".stage").nth(3)).to_contain_text("lake.shop.payments holds 182.0k")
    expect(page.locator("code", has_text="tables retry lake.shop.prices")).to_have_count(1)
    expect(page.locator("#errors tbody tr")).to_have_count(2)
    page.set_viewport_size({"width": 1200, "height": 1700})
    picture(page, "page-ill")


COLOUR = {"well": "1a7f45", "passing": "b08800", "ill": "b3261e"}


@pytest.mark.parametrize(
    ("scene", "title", "icon"),
    [
        (well, "binlogd", "well"),
        (starting, "binlogd: is starting - binlogd", "passing"),
        (behind, "pipeline shop: is 12 min behind, held by lake.shop.orders - binlogd", "passing"),
        (ill, "4 things are not well - binlogd", "ill"),
        (stopped, "pipeline crm: failed: crm.changes:0 offset 48211", "ill"),
        (many, "lake: lake.tenant07.audit_0, lake.tenant07.audit_1", "ill"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_glance_tells_each_state_on_every_screen(
    scene: Callable[[int], dict[str, Any]],
    title: str,
    icon: str,
    daemon: Daemon,
    opened: Callable[..., Page],
) -> None:
    """Title and icon as well; no screen is scrolled sideways."""
    address = daemon.shows(scene, samples=20 if scene is many else 200)
    for size, screen in (("desktop", WIDE), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            page = opened(address, viewport=screen, color_scheme=scheme)
            assert page.title().startswith(title)
            drawn = page.locator("link[rel=icon]").get_attribute("href") or ""
            assert COLOUR[icon] in drawn
            assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
            assert top(page, "[role=status]") < top(page, "#hour") < top(page, "#choice")
            assert top(page, "#hour") < screen["height"] / 3
            picture(page, f"page-{scene.__name__}-{size}-{scheme}")


def top(page: Page, what: str) -> float:
    """Where it begins, from the page's top."""
    asked = "what => document.querySelector(what).getBoundingClientRect().top"
    return float(page.evaluate(asked, what))


def test_how_long_a_catch_up_takes_is_told(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """At the pace of the last minutes."""
    page = opened(daemon.shows(behind, samples=200))
    expect(page.locator("#hour p.left")).to_have_text("shop: caught up in about 41 min")


def test_three_idle_pipelines_are_three_lines_on_a_phone(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    """Each opens to its own hour and stages, and stays open while the page goes on."""
    page = opened(daemon.shows(three_idle), viewport=PHONE, is_mobile=True, device_scale_factor=2)
    box = page.locator("#pipelines").bounding_box()
    assert box is not None
    assert box["height"] < 200
    expect(page.locator(".stage:visible")).to_have_count(0)
    page.locator(".pipeline > summary").nth(1).click()
    daemon.status = three_idle(91) | {"version": "9.9.9"}
    expect(page.locator(".part > p.quiet").first).to_contain_text("9.9.9")
    expect(page.locator(".stage:visible")).to_have_count(5)
    expect(page.locator(".pipeline[open] svg.line")).to_have_count(3)


def test_title_and_icon_change_while_the_page_is_open(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    page = opened(daemon.shows(well, samples=2))
    daemon.status = ill(3)
    expect(page).to_have_title("4 things are not well - binlogd")
    drawn = page.locator("link[rel=icon]").get_attribute("href") or ""
    assert COLOUR["ill"] in drawn


def test_what_else_is_known_is_on_the_page(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """Verifications, events, targets without a change since the start, the configuration."""
    page = opened(daemon.shows(ill))
    expect(page.locator("#verified tbody tr.ill")).to_contain_text("3 rows differ")
    expect(page.locator("#events tbody tr").first).to_contain_text("began")
    expect(page.locator("#letters")).to_contain_text("4 not replayed")
    daemon.status = starting(1)
    expect(page.locator("summary", has_text="8 targets without a change")).to_have_count(1)
    page.get_by_role("link", name="Configuration in force").click()
    expect(page.locator("#config pre")).to_have_text(CONFIGURATION)


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


def test_it_stays_up_to_date_by_itself(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """What was opened stays open, what was typed stays typed; a daemon that is gone is told."""
    page = opened(daemon.shows(well, samples=2))
    partitions = page.locator("details details", has_text="1 partition")
    partitions.locator("summary").click()
    daemon.status = ill(3)
    expect(page.get_by_role("status")).to_have_text("4 things are not well")
    expect(partitions).to_have_attribute("open", "")


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
    expect(page.locator("svg.line")).to_have_count(3)
    expect(page.locator("figcaption").first).to_contain_text("Rows a second")
    expect(page.locator(".log li")).to_have_count(2)
    picture(page, "page-target")


def test_on_a_phone_nothing_is_wider_than_the_screen(
    daemon: Daemon, opened: Callable[..., Page]
) -> None:
    """Tables scroll in themselves."""
    page = opened(daemon.shows(ill), viewport=PHONE, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_commands_break_between_words(daemon: Daemon, opened: Callable[..., Page]) -> None:
    """No line ends with the dashes of an option; what is copied is the command."""
    page = opened(daemon.shows(ill), viewport=PHONE)
    command = page.locator("code", has_text="dead-letters replay").first
    words = command.locator("span").evaluate_all("all => all.map(word => word.offsetHeight)")
    assert (len(words), max(words) < 30) == (3, True)
    command.click()
    assert page.evaluate("`${getSelection()}`").endswith("replay --pipeline shop --all")


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
