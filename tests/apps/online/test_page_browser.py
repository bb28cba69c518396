"""The live page in a real browser: it draws what comes, sets names as text, and says nothing on the console."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from dynid.apps.online.page import Page

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.broken=1>"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BINARY, DRIVER = next((found for found in map(shutil.which, BROWSERS) if found), None), shutil.which("chromedriver")
pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
if BINARY is None or DRIVER is None:
    pytest.skip(
        "no Chromium with its chromedriver on this machine (on Debian: apt-get install chromium chromium-driver)",
        allow_module_level=True,
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BINARY
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        profile,
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield chromium
    chromium.quit()


def report(t: float, alarm: bool = False) -> dict[str, Any]:
    group = {"group": HOSTILE, "since": 3.0, "statistic": 99.0, "threshold": 50.0}
    return {
        "t": t,
        "values": {"fv1": 1.0 + 0.01 * t, HOSTILE: 2.0, "m2": 0.0},
        "sigma": {"fv1": 0.1, HOSTILE: 0.2, "m2": None},
        "flags": {"fv1": 1, HOSTILE: 1, "m2": 0},
        "residual": 0.5,
        "alarm": group | {"groups": [group]} if alarm else None,
        "drift": "watching",
        "alarms": int(alarm),
        "rows": 10,
        "malformed": 0,
        "final": False,
    }


def test_live_page(browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    page = Page("127.0.0.1", 0, HOSTILE)
    try:
        browser.get_log("browser")
        browser.get(page.url)
        for k in range(1, 7):
            page.publish(report(float(k), alarm=k == 6))
            WebDriverWait(browser, 30).until(
                lambda b, k=k: int(b.execute_script("return document.documentElement.dataset.reports || 0")) >= k
            )
        assert browser.find_element("id", "robot").text == HOSTILE
        assert browser.find_element("id", "alarm").is_displayed()
        assert HOSTILE in browser.find_element("id", "cause").text
        figures = browser.find_elements("css selector", "figure")
        assert [figure.get_attribute("data-name") for figure in figures] == ["fv1", HOSTILE]
        line = browser.find_element("css selector", "figure svg .value").get_attribute("d")
        assert line.count("L") == 5
        assert browser.find_elements("css selector", "#values tr td")[0].text == "fv1"
        assert browser.execute_script("return window.broken === undefined && document.images.length === 0")
        assert browser.get_log("browser") == []
        browser.find_element("id", "filter").send_keys("m2")
        assert [row.text.split()[0] for row in browser.find_elements("css selector", "#values tr")] == ["m2"]
    finally:
        page.close()


def test_other_sites_get_nothing(browser: Any) -> None:
    """A page of another origin can neither read the page nor its events."""
    ours, theirs = Page("127.0.0.1", 0, "arm"), Page("127.0.0.1", 0, "other")
    try:
        ours.publish(report(1.0))
        browser.get("data:text/html,<title>other</title>")
        result = browser.execute_async_script(
            """const done = arguments[1];
            const source = new EventSource(arguments[0] + 'events');
            source.onmessage = () => done('read');
            source.addEventListener('report', () => done('read'));
            source.onerror = () => fetch(arguments[0]).then(() => done('read'), () => done('refused'));""",
            ours.url,
        )
        assert result == "refused"
    finally:
        ours.close()
        theirs.close()
