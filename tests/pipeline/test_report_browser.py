"""The report in a real browser: it loads without a word on the console, draws, answers, and asks nothing of the network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import Bench
from dynid.pipeline.identify import identify
from dynid.pipeline.report import report_result
from dynid.pipeline.result import IdentificationResult

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "<img src=x onerror=window.broken=1><b>bold</b>"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)
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
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chromium = webdriver.Chrome(options=options, service=Service(DRIVER))
    chromium.set_script_timeout(60)
    yield chromium
    chromium.quit()


@pytest.fixture(scope="module")
def run(bench: Bench) -> IdentificationResult:
    return identify(bench.urdf, bench.log, validate_on=[bench.other_log])


@pytest.fixture(scope="module")
def report(run: IdentificationResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_result(run, tmp_path_factory.mktemp("report") / "report.html")


def _open(browser: Any, path: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(path.as_uri())
    WebDriverWait(browser, 60).until(lambda b: b.execute_script("return document.documentElement.dataset.ready === 'true'"))


def _show(browser: Any, name: str) -> Any:
    """Bring a figure into view and wait until it is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    figure = browser.find_element("id", f"figure-{name}")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", figure)
    WebDriverWait(browser, 60).until(lambda _: figure.get_attribute("data-drawn") == "true")
    return figure


def _requested(browser: Any) -> list[str]:
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def _pixels(browser: Any) -> list[int]:
    """How many pixels of the three-dimensional view are painted, and a sum that changes with the picture."""
    return browser.execute_script("""
        const canvas = document.querySelector(".scene canvas");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let painted = 0, sum = 0;
        for (let i = 0; i < data.length; i += 4) {
          if (data[i + 3] > 0) { painted++; sum = (sum * 31 + data[i] + 7 * data[i + 1] + (i % 9973)) % 1000000007; }
        }
        return [painted, sum, canvas.width * canvas.height];
    """)


def test_loads_silently_and_alone(browser: Any, report: Path) -> None:
    browser.get_log("browser")
    browser.get_log("performance")
    _open(browser, report)
    names = browser.execute_script("return Object.keys(report.embedded.figures)")
    for tab in browser.find_elements("css selector", '[role="tab"]'):
        browser.execute_script("arguments[0].click()", tab)
    for name in names:
        if browser.find_element("id", f"figure-{name}").is_displayed():
            _show(browser, name)
    assert browser.get_log("browser") == []
    asked = _requested(browser)
    assert report.as_uri() in asked
    assert [url for url in asked if not url.startswith(("data:", "blob:")) and url != report.as_uri()] == []
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length"
        )
        == 0
    )


def test_policy_refuses_the_network(browser: Any, report: Path) -> None:
    _open(browser, report)
    answer = browser.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('sent'), (e) => done(String(e)));"
    )
    assert "Failed to fetch" in answer
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def test_robot_is_drawn_and_turns(browser: Any, report: Path) -> None:
    from selenium.webdriver import ActionChains

    _open(browser, report)
    canvas = browser.find_element("css selector", ".scene canvas")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    painted, before, total = _pixels(browser)
    assert 2_000 < painted < 0.9 * total
    ActionChains(browser).move_to_element(canvas).click_and_hold().move_by_offset(120, 30).release().perform()
    _, turned, _ = _pixels(browser)
    assert turned != before
    browser.find_element("css selector", ".scene .reset").click()
    assert _pixels(browser)[1] == before
    slider = browser.find_element("css selector", ".scene .instant")
    browser.execute_script("arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))", slider)
    assert _pixels(browser)[1] != before


def test_pointing_at_a_box_tells_its_mass(browser: Any, report: Path, run: IdentificationResult) -> None:
    _open(browser, report)
    said = browser.execute_script("""
        const canvas = document.querySelector(".scene canvas"), hint = document.querySelector(".scene .hint");
        const area = canvas.getBoundingClientRect(), said = new Set();
        for (let x = 4; x < area.width; x += 8) {
          for (let y = 4; y < area.height; y += 8) {
            canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: area.left + x, clientY: area.top + y }));
            said.add(hint.textContent);
          }
        }
        return [...said];
    """)
    masses = run.estimate.standard.inertials[:, 0]
    for link, joint, mass in zip(run.robot.links, run.robot.joint_names, masses, strict=True):
        (words,) = [sentence for sentence in said if sentence.startswith(f"{link}, moved by {joint}: ")]
        assert float(words.split(": ")[1].split(" kg")[0]) == pytest.approx(mass, rel=6e-3)


def test_torque_zooms_on_one_clock(browser: Any, report: Path, run: IdentificationResult) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    _open(browser, report)
    figure = _show(browser, "torque")
    ranges = (
        "const layout = arguments[0].querySelector('.drawing').layout;"
        "return Object.keys(layout).filter((k) => k.startsWith('xaxis')).map((k) => layout[k].range)"
    )
    before = browser.execute_script(ranges, figure)
    assert len(before) == run.robot.n_joints
    strip = figure.find_element("css selector", ".draglayer .nsewdrag")
    ActionChains(browser).move_to_element(strip).click_and_hold().move_by_offset(150, 0).release().perform()
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(ranges, figure) != before)
    after = browser.execute_script(ranges, figure)
    assert all(one == after[0] for one in after)
    assert after[0][1] - after[0][0] < 0.5 * (before[0][1] - before[0][0])
    ActionChains(browser).move_to_element(strip).double_click().perform()
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(ranges, figure)[0] == pytest.approx(before[0]))


def test_legend_hides_and_hover_tells(browser: Any, report: Path, run: IdentificationResult) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    _open(browser, report)
    figure = _show(browser, "torque")
    lines = "return arguments[0].querySelectorAll('.scatterlayer .trace').length"
    assert browser.execute_script(lines, figure) == 3 * run.robot.n_joints
    measured = figure.find_element("css selector", ".legend button")
    assert measured.text == "measured"
    measured.click()
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(lines, figure) == 2 * run.robot.n_joints)
    measured.click()
    WebDriverWait(browser, 20).until(lambda b: b.execute_script(lines, figure) == 3 * run.robot.n_joints)
    strip = figure.find_element("css selector", ".draglayer .nsewdrag")
    ActionChains(browser).move_to_element(strip).move_by_offset(3, 3).perform()
    WebDriverWait(browser, 20).until(lambda _: "predicted" in figure.find_element("css selector", ".hoverlayer").text)


@pytest.mark.parametrize(("format", "start"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_pictures_can_be_saved(browser: Any, report: Path, tmp_path: Path, format: str, start: bytes) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    _open(browser, report)
    figure = _show(browser, "friction")
    button = figure.find_element("css selector", f'[data-title="Save as {format}"]')
    browser.execute_script("arguments[0].click()", button)
    saved = tmp_path / f"friction.{format.lower()}"
    WebDriverWait(browser, 30).until(lambda _: saved.is_file() and saved.stat().st_size > 5_000)
    content = saved.read_bytes()
    assert content.startswith(start)
    if format == "SVG":
        assert b"friction identified" in content  # the legend comes with it


def test_tabs_change_what_is_shown(browser: Any, report: Path) -> None:
    _open(browser, report)
    assert not browser.find_element("id", "figure-residual_spectrum").is_displayed()
    tab = next(one for one in browser.find_elements("css selector", '[role="tab"]') if one.text == "spectrum")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", tab)
    tab.click()
    _show(browser, "residual_spectrum")
    assert not browser.find_element("id", "figure-residual_velocity").is_displayed()


def test_dark_pages_are_dark_in_every_part(browser: Any, report: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    colours = (
        "return [getComputedStyle(document.body).backgroundColor,"
        " document.querySelector('#figure-sigma .drawing').layout.font.color,"
        " document.querySelector('#figure-sigma .bars path').style.fill]"
    )
    try:
        _emulate(browser, "light")
        _open(browser, report)
        _show(browser, "sigma")
        light = browser.execute_script(colours)
        _emulate(browser, "dark")
        WebDriverWait(browser, 20).until(lambda b: b.execute_script(colours)[1] != light[1])
        dark = browser.execute_script(colours)
        assert all(one != other for one, other in zip(light, dark, strict=True))
        assert _brightness(light[0]) > 200
        assert _brightness(dark[0]) < 60
        browser.execute_script("document.querySelector('.theme').click()")  # by hand, against the system's wish
        WebDriverWait(browser, 20).until(lambda b: b.execute_script(colours) == light)
    finally:
        _emulate(browser, "light")


def test_readable_on_a_phone(browser: Any, report: Path) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        _open(browser, report)
        figure = _show(browser, "torque")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script("return arguments[0].querySelector('.main-svg').clientWidth", figure) <= 370
        assert browser.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)") >= 14
        verdict = browser.find_element("id", "verdict")
        assert verdict.rect["y"] < 300
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_names_are_shown_not_run(browser: Any, run: IdentificationResult, tmp_path: Path) -> None:
    first = run.robot.joint_names[0]
    joints = (replace(run.robot.joints[0], name=HOSTILE), *run.robot.joints[1:])
    columns = tuple(
        replace(column, joint=HOSTILE) if column.joint == first else column for column in run.robot.parameters.columns
    )
    values = replace(run.robot.parameters, columns=columns)
    robot = replace(run.robot, name=HOSTILE, joints=joints, links=(HOSTILE, *run.robot.links[1:]), parameters=values)
    found = replace(run.estimate, standard=values.with_values(run.estimate.standard.values))
    hostile = replace(run, robot=robot, estimate=found, notes=(HOSTILE,), logs=(), checks=())
    browser.get_log("browser")
    _open(browser, report_result(hostile, tmp_path / "report.html"))
    figure = _show(browser, "torque")
    assert HOSTILE in browser.find_element("tag name", "h1").text
    annotations = figure.find_element("css selector", ".infolayer").get_attribute("textContent")
    assert "<img src=x onerror" in annotations
    assert browser.execute_script("return [typeof window.broken, document.images.length]") == ["undefined", 0]
    assert browser.get_log("browser") == []


def test_none_of_the_known_hostile_names_runs(browser: Any, run: IdentificationResult, tmp_path: Path) -> None:
    """All names of :mod:`laws.test_hostile_names` in every place of one page that a name of a file comes to."""
    from laws import test_hostile_names

    n, names = run.robot.n_joints, test_hostile_names.HOSTILE
    joints = tuple(replace(joint, name=f"{joint.name} {names[k % 10]}") for k, joint in enumerate(run.robot.joints))
    robot = replace(run.robot, name=" ".join(names), joints=joints, links=tuple(f"{k} {names[k + 5]}" for k in range(n)))
    hostile = replace(run, robot=robot, notes=names, logs=tuple((name, "0" * 64) for name in names), checks=())
    browser.get_log("browser")
    _open(browser, report_result(hostile, tmp_path / "report.html"))
    shown = browser.execute_script("return document.body.textContent")
    assert all(part in shown for part in ('document.title="owned"', "onerror=alert(1)", "touch owned"))
    state = browser.execute_script("return [document.title === 'owned', typeof window.owned, document.images.length]")
    assert state == [False, "undefined", 0]
    assert browser.get_log("browser") == []


def _emulate(browser: Any, scheme: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def _brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return (red + green + blue) / 3.0
