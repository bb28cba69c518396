"""The commands whose results are kept: every kind of log and every verb, as users type them.

A renamed flag is edited here and nowhere else. ``{here}`` is the folder of the robots and logs (``write_workshop``), in which runs are
written too, ``{examples}`` that of the examples; a case that reads the run of another one names it in ``needs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from golden import logs

Rule = Literal["fixed", "chosen"]
PLAIN = "--friction linear --cutoff-hz 10 --velocity position"
"""Nothing is chosen by held-out error, so nothing can be chosen otherwise."""
MODELS = ("urdf", "mjcf", "sdf", "c", "json")
ARM, TWO = logs.ARM, logs.ARM[1:]


@dataclass(frozen=True)
class Case:
    """One command and how its result is compared: ``fixed`` to the last digits, ``chosen`` where a search decides on the way."""

    name: str
    words: str
    rule: Rule = "fixed"
    needs: tuple[str, ...] = ()
    stdin: str | None = None
    """File that the command reads as standard input."""
    written: tuple[str, ...] = ()
    """Files whose numbers belong to the result."""
    code: int = 0
    """Exit code."""


CASES = (
    Case("base", "base {here}/arm.urdf"),
    Case("base_floating", "base {here}/two.urdf --floating --effects none"),
    Case("base_closed", "base {examples}/robots/five_bar.toml"),
    Case("check", "check {here}/arm.urdf"),
    Case("check_broken", "check {here}/broken.urdf", code=1),
    Case("check_base", "check {here}/arm.urdf --base {here}/beta.csv --effects none", code=1),
    Case("repair", "repair {here}/broken.urdf -o {here}/repaired.urdf", written=("repaired.urdf",)),
    Case("data", "data {here}/log1.csv --robot {here}/arm.urdf"),
    Case(
        "simulate",
        "simulate {here}/two.urdf {here}/motion.csv -o {here}/simulated.csv --rate 100 --seed 3",
        written=("simulated.csv",),
    ),
    Case("torque", f"identify {{here}}/arm.urdf {{here}}/log1.csv --validate {{here}}/log2.csv {PLAIN} -o {{here}}/torque"),
    Case(
        "torque_stream",
        f"identify {{here}}/arm.urdf {{here}}/log1.csv --validate {{here}}/log2.csv {PLAIN} --stream on --export json"
        " -o {here}/torque_stream",
    ),
    Case(
        "torque_threads",
        f"identify {{here}}/arm.urdf {{here}}/log1.csv {{here}}/log2.csv --split 0.65 {PLAIN} --engine threads:2 --export json"
        " --method wls -o {here}/torque_threads",
    ),
    Case(
        "torque_auto",
        "identify {here}/two.urdf {here}/long.csv --split 0.65 --export json -o {here}/torque_auto",
        rule="chosen",
    ),
    Case(
        "signals",
        f"identify {{here}}/arm.urdf {{here}}/log1.csv --split 0.65 {PLAIN} --filter-on signals --method ols --export json"
        " -o {here}/signals",
    ),
    Case(
        "mechanisms",
        f"identify {{here}}/arm.urdf {{here}}/log1.csv --split 0.65 {PLAIN} --coupling 3:2=1 --spring shoulder=torsion"
        " --export json -o {here}/mechanisms",
    ),
    Case(
        "energy",
        "identify {here}/arm.urdf {here}/log1.csv --rows energy --friction linear --cutoff-hz 10 --velocity position"
        " --split 0.65 --export json -o {here}/energy",
    ),
    Case(
        "polynomial",
        "identify {here}/arm.urdf {here}/log1.csv --rows polynomial --window 0.1 --friction linear --split 0.65"
        " --velocity position --export json -o {here}/polynomial",
    ),
    Case(
        "recursive",
        f"identify {{here}}/arm.urdf {{here}}/log1.csv --split 0.65 {PLAIN} --method recursive --export json"
        " -o {here}/recursive",
    ),
    Case("poses", "identify {here}/arm.urdf {here}/poses.csv --export json -o {here}/poses"),
    Case(
        "coefficients",
        "identify {here}/arm.urdf --method retrieve --coefficients {here}/torque --export json -o {here}/coefficients",
        needs=("torque",),
    ),
    Case(
        "friction_alone",
        "identify {here}/arm.urdf {here}/log2.csv --fix-bodies {here}/torque --split 0.65 --friction linear --export json"
        " -o {here}/friction_alone",
        needs=("torque",),
    ),
    Case(
        "sensor_joints",
        "identify {here}/arm.urdf {here}/sensor1.csv --frame ft_sensor --cutoff-hz 12 --validate {here}/sensor2.csv"
        " -o {here}/sensor_joints",
    ),
    Case("sensor_imu", "identify {here}/imu.csv --cutoff-hz 12 --split 0.6 --mass 1.85 -o {here}/sensor_imu"),
    Case("validate_sensor", "validate {here}/sensor_joints {here}/sensor3.csv", needs=("sensor_joints",)),
    Case("payload", "payload {here}/torque {here}/loaded.csv --format ur", needs=("torque",)),
    Case(
        "payload_sensor",
        "payload --sensor {here}/sensor1.csv --robot {here}/arm.urdf --frame ft_sensor --filter butterworth:12",
    ),
    Case(
        "gains", "gains {here}/free.csv {here}/heavy.csv --robot {here}/arm.urdf --mass 2.5 --cutoff-hz 10 --velocity logged"
    ),
    Case(
        "actuators",
        "actuators {here}/two.urdf {here}/servo1.csv --kp 300,150 --kd 20,8 --delay auto --validate {here}/servo2.csv"
        " -o {here}/actuators",
        rule="chosen",
    ),
    Case("validate", "validate {here}/torque {here}/log3.csv --replay", needs=("torque",)),
    Case("compare", f"compare {{here}}/arm.urdf {{here}}/log1.csv --split 0.65 {PLAIN}"),
    Case(
        "compare_runs",
        "compare-runs {here}/torque {here}/torque_threads --on {here}/log3.csv --all",
        needs=("torque", "torque_threads"),
    ),
    Case(
        "export",
        f"export {{here}}/torque --to {','.join(MODELS)} -o {{here}}/models",
        needs=("torque",),
        written=("models/golden_arm_identified.*",),
    ),
    *(
        Case(
            f"store_add_{robot}{day}",
            f"store add {{here}}/two.urdf {{here}}/{log}.csv --to {{here}}/store --robot-id {robot} --day 2026-03-0{day} {PLAIN}",
            needs=needs,
        )
        for robot, day, log, needs in (
            ("A", 1, "two1", ()),
            ("A", 2, "two2", ("store_add_A1",)),
            ("B", 1, "two3", ("store_add_A2",)),
        )
    ),
    Case(
        "store_identify",
        "store identify {here}/store --where robot=A --no-boxes -o {here}/of_store",
        needs=("store_add_B1",),
    ),
    Case("fleet", "fleet {here}/store -o {here}/fleet.html", needs=("store_add_B1",)),
    Case("watch", "watch {here}/arm.urdf --every 2", stdin="log1.csv"),
    Case(
        "excite",
        "excite {here}/two.urdf -o {here}/excitation.csv --starts 1 --seed 4 --period 4 --harmonics 2 --rate 100"
        " --seconds 600 --engine serial --no-collision",
        rule="chosen",
    ),
)
BY_NAME = {case.name: case for case in CASES}


def write_workshop(here: Path) -> None:
    """The robots and logs that the commands read."""
    here.mkdir(parents=True, exist_ok=True)
    (here / "arm.urdf").write_text(logs.urdf(ARM))
    (here / "broken.urdf").write_text(logs.urdf(ARM, broken=True))
    (here / "two.urdf").write_text(logs.urdf(TWO))
    (here / "beta.csv").write_text(
        "name,value\n" + "".join(f"{name},{value}\n" for name, value in logs.IMPOSSIBLE_BASE.items())
    )
    for seed in (1, 2, 3):
        logs.torque_log(here / f"log{seed}.csv", ARM, seed)
        logs.torque_log(here / f"two{seed}.csv", TWO, 10 + seed, seconds=4.0)
        logs.sensor_log(here / f"sensor{seed}.csv", ARM, 20 + seed)
    logs.torque_log(here / "long.csv", TWO, 14, seconds=10.0)
    logs.torque_log(here / "loaded.csv", ARM, 4, load=True)
    logs.current_log(here / "free.csv", ARM, 5)
    logs.current_log(here / "heavy.csv", ARM, 6, load=True)
    logs.pose_table(here / "poses.csv", ARM)
    logs.sensor_log(here / "imu.csv", ARM, 24, own_motion=True)
    logs.motion(here / "motion.csv", TWO, 30)
    for seed in (1, 2):
        logs.position_log(here / f"servo{seed}.csv", TWO, 40 + seed)
