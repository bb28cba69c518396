"""Pictures and screens of the gallery, made anew from simulated data.

    python docs/pictures.py            # docs/images/*.png and docs/screens.md; needs Chromium

Everything is simulated: the demonstration arm, a fleet of it, a position-controlled pendulum. Pages are drawn by Chromium without a window.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dynid.apps.fleet.judge import assess
from dynid.apps.fleet.section import report_fleet
from dynid.apps.online.page import Page
from dynid.io.demo import demo_recording, demo_robot
from dynid.io.logs.read import write_recording
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.urdf_write import write_urdf
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels

HERE = Path(__file__).parent
BROWSER = next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)
LOAD = (1.5, 0.03, 0.0, 0.06, 0.006, 0.0, 0.006, -0.0012, 0.0, 0.003)


def command(place: Path, *words: object) -> str:
    """What a command prints, as in a terminal of 100 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "dynid", *map(str, words)], cwd=place, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"dynid {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout.rstrip()


def picture(source: str, name: str, height: int = 900, wait_ms: int = 4000) -> None:
    """A page as docs/images/NAME.png."""
    target = HERE / "images" / f"{name}.png"
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size=1280,{height}"]
    with tempfile.TemporaryDirectory() as profile:
        words = [
            str(BROWSER),
            *flags,
            f"--user-data-dir={profile}",
            f"--virtual-time-budget={wait_ms}",
            f"--screenshot={target}",
            source,
        ]
        subprocess.run(words, check=True, capture_output=True, timeout=120)
    sys.stdout.write(f"{target}\n")


def live_picture(url: str, name: str) -> None:
    """A page whose connection never ends, two seconds after it was opened."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.get(url)
        time.sleep(2.0)
        browser.save_screenshot(str(HERE / "images" / f"{name}.png"))
    finally:
        browser.quit()


def robot_files(place: Path) -> None:
    """The arm and its logs: one to identify from, another motion, and one with a load on the last link."""
    robot = demo_robot()
    write_urdf(robot, place / "arm.urdf")
    for number, name in enumerate(("log", "other")):
        write_recording(demo_recording(robot, seconds=20.0, torque_noise=0.01, seed=number), place / f"{name}.parquet")
    values = robot.parameters.values.copy()
    last = robot.parameters.n_inertial
    values[last - 10 : last] += LOAD
    loaded = robot.with_parameters(robot.parameters.with_values(values))
    write_recording(demo_recording(loaded, seconds=20.0, torque_noise=0.01, seed=2), place / "loaded.parquet")
    for name in ("log", "loaded"):  # motor current of drives with 12 N m/A
        recording = demo_recording(robot if name == "log" else loaded, seconds=20.0, torque_noise=0.01, seed=7)
        assert recording.torque is not None
        bare = recording.with_(torque=None, current=recording.torque / 12.0)
        write_recording(bare, place / f"{name}_current.parquet")


def servo_files(place: Path) -> None:
    """Three joints under position control, commands and positions alone."""
    from position_logs import position_log, small_arm, true_model

    robot = small_arm()
    (place / "servo.xml").write_text(mjcf_text(robot.with_effects(()), limits=False), encoding="utf-8")
    log = position_log(true_model(robot), seconds=8.0)
    header = ",".join(["t", *(f"{kind}.{name}" for kind in ("q", "q_cmd") for name in robot.joint_names)])
    np.savetxt(
        place / "servo.csv",
        np.column_stack([log.time, log.position, log.command.values]),
        delimiter=",",
        header=header,
        comments="",
    )


def fleet_page(place: Path) -> None:
    """Five robots over thirty days: friction of one joint grows slowly, that of another robot's by a step."""
    from fleet_simulation import Event, FleetPlan, simulated_robots

    robot = demo_robot("viscous,coulomb,offset").only(["shoulder_pitch", "elbow"])
    base = reduce_to_base(robot)
    events = {2: (Event(11, joint=2, factor=1.44, until=29),), 3: (Event(17, joint=1, factor=1.25),)}
    plan = FleetPlan(robots=5, days=30, seconds=4.0, motions=2, events=events)
    report_fleet(
        assess(simulated_robots(robot, base, plan, seed=1), torque_channels(robot), base, robot), place / "fleet.html"
    )


def fleet_store(place: Path) -> None:
    """The same fleet as a store, ``fleet/store``, beside the robot A that made it."""
    from fleet_simulation import Event, FleetPlan, simulated_fleet
    from small_fleet import make_shop

    (place / "fleet").mkdir(exist_ok=True)
    shop = make_shop(place / "fleet")
    events = {2: (Event(11, joint=2, factor=1.44, until=29),), 3: (Event(17, joint=1, factor=1.25),)}
    plan = FleetPlan(robots=5, days=30, seconds=4.0, motions=2, events=events)
    for entry in simulated_fleet(shop.store.run.robot, shop.store.base, plan, seed=1):
        shop.store.add(entry)


def watch_page() -> None:
    """The live page with two minutes of reports, in the last of which the elbow's friction grows."""
    page = Page("127.0.0.1", 0, "arm")
    rng = np.random.default_rng(0)
    try:
        for k in range(120):
            grown = 1.0 + 0.02 * max(0, k - 80)
            values = {"fv1": 1.2, "fc1": 2.1, "fv4": 0.9 * grown, "fc4": 1.6 * grown}
            noisy = {name: value + 0.05 * rng.normal() / np.sqrt(k + 1) for name, value in values.items()}
            group = {"group": "friction of elbow", "since": 80.0, "statistic": 20.0 + k, "threshold": 50.0}
            page.publish(
                {
                    "t": float(k), "values": noisy, "sigma": dict.fromkeys(values, 0.3 / np.sqrt(k + 1)), "flags": dict.fromkeys(values, 1),
                    "residual": 0.2 + 0.1 * rng.random(), "alarm": group | {"groups": [group]} if k > 90 else None, "drift": "watching",
                    "alarms": int(k > 90), "rows": 100 * k, "malformed": 0, "final": False,
                }
            )  # fmt: skip
        live_picture(page.url, "watch")
    finally:
        page.close()


SCREENS: tuple[tuple[str, ...], ...] = (
    ("data", "log.parquet", "--robot", "arm.urdf"),
    ("identify", "arm.urdf", "log.parquet", "--split", "0.65", "-o", "run"),
    ("validate", "run", "other.parquet"),
    ("compare", "arm.urdf", "log.parquet", "--methods", "ols,wls,ridge,sdp,manifold"),
    ("payload", "run", "loaded.parquet", "--report", "payload.html"),
    ("gains", "log_current.parquet", "loaded_current.parquet", "--robot", "arm.urdf", "--mass", "1.5"),
    (
        "actuators",
        "servo.xml",
        "servo.csv",
        "--kp",
        "400,400,200",
        "--kd",
        "30,30,15",
        "--split",
        "0.65",
        "--report",
        "-o",
        "servo",
    ),
    ("predict", "run", "other.parquet", "-o", "torque.parquet"),
    ("guide", "franka", "arm.urdf", "log.parquet"),
    ("excite", "arm.urdf", "-o", "motion.csv", "--period", "10", "--seconds", "8", "--picture", "motion.html"),
    ("fleet", "fleet/store", "--where", "robot!=A", "--max-change", "0.2", "-o", "robots.html"),
)


def screens(place: Path) -> None:
    """docs/screens.md: what eleven commands print."""
    lines = [
        "# What commands print",
        "",
        "Eleven commands at 100 columns, on simulated logs of the demonstration arm; written by `python docs/pictures.py`.",
        "Each answers on one screen: what matters first, then the worst joints, what is not known, what mends it, and what to do",
        "next. `--verbose` prints the rest.",
    ]
    for words in SCREENS:
        told = command(place, *words)
        lines += ["", f"## {words[0]}", "", "```text", f"$ dynid {' '.join(words)}", told, "```"]
    (HERE / "screens.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Make everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="folder to keep the pages in")
    given = parser.parse_args()
    if BROWSER is None:
        raise SystemExit("no Chromium on this machine (on Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        place.mkdir(exist_ok=True)
        robot_files(place)
        servo_files(place)
        fleet_store(place)
        screens(place)
        fleet_page(place)
        for file, name, height in (
            ("run/report.html", "report", 1100), ("motion.html", "motion", 1000), ("payload.html", "payload", 1000),
            ("fleet.html", "fleet", 1250), ("servo/report.html", "actuators", 1000),
        ):  # fmt: skip
            picture((place / file).resolve().as_uri(), name, height)
        watch_page()


if __name__ == "__main__":
    main()
