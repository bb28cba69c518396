from __future__ import annotations

import re
from pathlib import Path

from dynid.apps.fleet.judge import assess
from dynid.apps.fleet.section import report_fleet
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from fleet_simulation import simulated_robots
from small_fleet import small_plan, small_robot


def test_the_page_has_a_heat_map_trends_and_escaped_names(tmp_path: Path) -> None:
    robot = small_robot()
    base = reduce_to_base(robot)
    robots = simulated_robots(robot, base, small_plan(), seed=1)
    named = ((name.replace("R003", "<script>R003</script>"), own) for name, own in robots)
    fleet = assess(named, torque_channels(robot), base, robot)
    text = report_fleet(fleet, tmp_path / "fleet.html").read_text(encoding="utf-8")
    assert "2 of 8 robots have an alarm" in text
    assert "<script>R003" not in text
    assert "&lt;script&gt;R003&lt;/script&gt; elbow: Coulomb friction" in text
    assert len(re.findall(r'<td class="heat"', text)) == 8 * base.n_base
    assert 'class="heat-legend"' in text
    assert "e+0" not in re.sub(r"<script.*?</script>", "", text, flags=re.S).split("How much robots differ")[-1]
    assert 'data-figure="trends"' in text
    assert "http://" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # nothing is fetched
    for change in fleet.changes:
        if change.robot.startswith("R"):
            assert change.sentence().replace("'", "&#x27;") in text
