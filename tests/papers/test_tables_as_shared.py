"""The project's own tables against an independent transcription of the same papers, where that is on this machine."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.io.robots.read import read_robot
from dynid.model.inertia import consistency, reorder
from dynid.regression.base import reduce_to_base
from published import columns, combinations, gaz_bodies, gaz_bounds, gaz_coefficients, published_robot, tables
from shared_data import need

FILES = {
    "sousa2014": "tables/sousa2014_table3_table6.json",
    "gautier_khalil1992": "tables/gautier_khalil1992.json",
    "gaz2019": "panda_gaz/expected.json",
    "lomakin2020": "tables/lomakin_table1.json",
    "traversaro2016": "tables/traversaro2016_table1.json",
}
ROOT = need(*FILES.values(), "robots/wam7.toml", "robots/gautier_khalil_3r.toml", "wam7/fourier.json")


def shared_json(relative):
    return json.loads((ROOT / relative).read_text())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("wam7", "robots/wam7.toml"),
        ("gautier_khalil_3r", "robots/gautier_khalil_3r.toml"),
        ("panda", "panda_gaz/robot.toml"),
    ],
)
def test_same_arms(ours, theirs):
    own, other = published_robot(ours), read_robot(ROOT / theirs, "none")
    np.testing.assert_allclose(reduce_to_base(own).K, reduce_to_base(other).K, rtol=0.0, atol=1e-12)
    for one, two in zip(own.joints, other.joints, strict=True):
        # the envelope of the WAM's motion moves by the rounding of its coefficients
        assert [one.q_min, one.q_max, one.dq_max, one.ddq_max] == pytest.approx(
            [two.q_min, two.q_max, two.dq_max, two.ddq_max], abs=0.02
        )


def test_sousa():
    rows = shared_json(FILES["sousa2014"])["rows"]
    table = tables("sousa2014")
    assert combinations(table["combinations"]) == [row["terms"] for row in rows]
    cad, ols, sigma, fbpe = columns(table["table_6"])
    for column, key in ((cad, "cad"), (ols, "ols"), (sigma, "ols_rel_std_percent"), (fbpe, "fbpe_ols_extra")):
        legible = np.isfinite(column)
        theirs = np.array([np.nan if row[key] is None else row[key] for row in rows])
        np.testing.assert_allclose(column[legible], theirs[legible], rtol=5e-4)  # two last digits differ
    assert table["table_8"]["validation_b"] == shared_json("tables/sousa2014_table8.json")["rows"]["validation_B"]
    bounds = shared_json("tables/sousa2014_table7.json")
    assert (table["extra_constraints"]["lower"], table["extra_constraints"]["upper"]) == (bounds["lower"], bounds["upper"])
    motion = shared_json("wam7/fourier.json")["trajectories"]["traj1"]
    full = np.hstack([motion["a"], motion["b"], np.array(motion["q0"])[:, None]])
    np.testing.assert_array_equal(np.round(full, 2), table["motion"]["table_5"])


def test_gautier_khalil():
    theirs, ours = shared_json(FILES["gautier_khalil1992"]), tables("gautier_khalil1992")
    keys = ("r", "random_min", "random_mean", "random_max", "optimum")
    expected = [[np.nan if row[key] is None else row[key] for key in keys] for row in theirs["table2_cond_vs_r"]]
    np.testing.assert_array_equal(ours["table_2"], expected)
    for number in (3, 4, 5, 8, 9, 10):
        for kind in ("optimum", "random"):
            one, two = ours[f"table_{number}"][kind], theirs[f"table{number}"][kind]
            assert (one["rows"], one["condition_number"], one["scaling"]) == (two["rows"], two["cond"], two["S"])
    for number in (6, 7, 11, 12):
        for row in theirs["estimates"][f"table{number}"]["rows"]:
            found = ours[f"table_{number}"][row["name"]]
            assert found[1:] == [row["X_hat"], row["diff"], row["rel_diff"], row["sigma"]]


def test_gaz():
    theirs, table = shared_json(FILES["gaz2019"]), tables("gaz2019")
    rows = theirs["coefficients"]
    assert combinations(table["table_3"]["combinations"]) == [row["terms"] for row in rows]
    keys = ("pi_RE", "sigma_RE_percent", "pi_of_phat", "pi_CLS", "sigma_CLS_percent", "pi_OSI")
    for column, key in zip(gaz_coefficients().values(), keys, strict=True):
        np.testing.assert_allclose(column, np.array([row[key] for row in rows], dtype=float), rtol=1e-9)
    assert [row[0] for row in table["table_3"]["friction"]] == [row["name"] for row in theirs["linear_friction"]]
    expected = [[row["pi_CLS"], row["sigma_CLS_percent"], row["pi_OSI"]] for row in theirs["linear_friction"]]
    np.testing.assert_array_equal(columns(table["table_3"]["friction"]).T, expected)
    for name in ("phi1", "phi2", "phi3"):
        assert table["table_1"][name] == theirs["friction_sigmoid"][name]
    for name in ("a", "b", "q0"):
        assert table["table_2"][name] == theirs["exciting_trajectory"][name]
    for c5z, key in ((None, "bounds"), (-0.35, "bounds_repo_csv")):
        limits = gaz_bounds(c5z)
        assert limits.pop("total_mass") == tuple(theirs["total_mass_range_kg"])
        assert limits == {name: tuple(pair) for name, pair in theirs[key].items()}
    order = ("m{}", "c{}x", "c{}y", "c{}z", *(f"I{{}}{pair}" for pair in ("xx", "xy", "xz", "yy", "yz", "zz")))
    for ours, key in (("p_hat", "feasible_parameters_phat"), ("delta", "lmi_sdp_parameters_delta")):
        expected = [[theirs[key][name.format(i)] for name in order] for i in range(1, 8)]
        np.testing.assert_array_equal(np.array(table["tables_8_9"][ours]), np.array(expected, dtype=float))
    for column in ("p_real", "p_hat"):
        parameters = theirs["two_link_example"]["parameters"]
        expected = [[parameters[name.format(i)][column] for name in order] for i in (1, 2)]
        np.testing.assert_array_equal(table["table_7"][column], expected)
        assert gaz_bodies(table["table_7"][column]).shape == (2, 10)


def test_lomakin():
    theirs, table = shared_json(FILES["lomakin2020"]), tables("lomakin2020")
    expected = [[row["ols_savgol"], row["ols_pa"], row["mrls_pa"]] for row in theirs["rows"]]
    assert list(table["table_1"].values()) == expected
    assert table["polynomial_approximation"]["delay_s"] == theirs["filters"]["polynomial_approximation"]["t_d_s"]


def test_traversaro():
    """The printed bodies, and their margins by other means."""
    ours = tables("traversaro2016")["table_1"]
    theirs = shared_json(FILES["traversaro2016"])["rows"]
    assert len(ours) == len(theirs)
    for row, entry in zip(ours, theirs, strict=True):
        tensor = entry["I_frame"]
        values = [entry["m"], *entry["mc"], *(tensor[k] for k in ("xx", "xy", "xz", "yy", "yz", "zz"))]
        assert row == [entry["trajectory_time"], entry["optimisation_on"], *values]
        report, expected = consistency(reorder(values, "idyntree")), entry["recomputed"]
        assert report.triangle_slack * 0.5 == pytest.approx(expected["triangle_margin"], rel=1e-9)
        assert report.min_eigenvalue == pytest.approx(expected["pseudo_inertia_min_eig"], rel=1e-9)
        assert report.principal_moments == pytest.approx(expected["I_com_eigenvalues"], rel=1e-6)
