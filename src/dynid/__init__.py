"""Robot dynamic identification: from a robot description and logs of its motion to a physically consistent dynamic model.

    import dynid
    robot   = dynid.read_robot("arm.urdf")
    base    = dynid.reduce_to_base(robot)
    samples = dynid.process(dynid.read_recording("run.parquet", robot), [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()])
    result  = dynid.estimate(dynid.build_regression(robot, samples), base)

Names are loaded when first used, so that importing the package costs nothing. The path of a run is at the top; everything
of one kind, with what it takes to add your own, is in a family: ``dynid.effects``, ``dynid.steps``, ``dynid.rows``,
``dynid.methods``, ``dynid.constraints``, ``dynid.feasible``, ``dynid.friction``, ``dynid.excitation``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dynid.lazy import Offered

try:
    __version__ = version("dynid")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

_OFFERED = Offered(
    __name__,
    {
        "dynid.errors": ("DynidError", "DynidWarning", "InconsistentModelError", "InputError"),
        "dynid.inertia": ("consistency", "is_consistent"),
        "dynid.parameters": ("Parameters",),
        "dynid.robot.model": ("Joint", "Robot", "make_robot"),
        "dynid.robot.read": ("read_robot",),
        "dynid.robot.coupling": ("Coupling", "coupling_from_terms"),
        "dynid.robot.motors": ("with_coupling",),
        "dynid.robot.builtin": ("demo_robot",),
        "dynid.robot.effects": (
            "Armature",
            "AsymmetricCoulomb",
            "Cable",
            "Coulomb",
            "Coupled",
            "LoadCoulomb",
            "LoadViscous",
            "Offset",
            "PointSpring",
            "Potential",
            "Sigmoid",
            "SmoothCoulomb",
            "Stribeck",
            "TorsionSpring",
            "Viscous",
            "ViscousPolynomial",
        ),
        "dynid.robot.motion": ("link_motion", "LinkMotion", "ProperAcceleration", "SpatialAcceleration"),
        "dynid.robot.frames": ("frame_named", "Frame"),
        "dynid.recording.recording": ("Recording", "StaticRecording", "WrenchRecording", "write_recording"),
        "dynid.recording.readers.read": ("open_recording", "read_recording"),
        "dynid.recording.readers.options": ("ReadOptions",),
        "dynid.recording.readers.formats.registry": ("register_format", "unregister_format"),
        "dynid.recording.samples": ("Samples",),
        "dynid.recording.process": ("process",),
        "dynid.recording.wrench_samples": ("WrenchSamples",),
        "dynid.recording.steps.decimate": ("Decimate",),
        "dynid.recording.steps.differentiate": ("Differentiate",),
        "dynid.recording.steps.edges": ("DropEdges",),
        "dynid.recording.steps.gaps": ("SplitAtGaps",),
        "dynid.recording.steps.lowpass": ("LowPass",),
        "dynid.recording.steps.median": ("Median",),
        "dynid.recording.steps.period_average": ("PeriodAverage",),
        "dynid.recording.steps.repeated": ("DropRepeated",),
        "dynid.recording.steps.resample": ("Resample",),
        "dynid.recording.steps.savitzky_golay": ("SavitzkyGolay",),
        "dynid.recording.steps.shift": ("Shift",),
        "dynid.recording.steps.spline": ("SmoothingSpline",),
        "dynid.recording.steps.trim": ("Trim", "TrimToMotion"),
        "dynid.recording.steps.unwrap": ("Unwrap",),
        "dynid.recording.cutoff": ("candidate_cutoffs", "choose_cutoff", "fourier_cutoff_hz"),
        "dynid.recording.polynomial": ("PolynomialApproximation", "null_frequency"),
        "dynid.regression.torque": ("inverse_dynamics", "torque_regressor"),
        "dynid.regression.energy": ("energy_regressor",),
        "dynid.regression.energy_rows": ("EnergyRows", "energy_regression"),
        "dynid.regression.momentum": ("momentum_regressor",),
        "dynid.regression.static": ("static_regressor",),
        "dynid.regression.body": ("body_regressor",),
        "dynid.regression.base": ("BaseReduction", "reduce_to_base"),
        "dynid.regression.factor": ("Regression", "build_regression"),
        "dynid.regression.row_filter": ("FilterAndDecimate", "FilteredRows"),
        "dynid.regression.polynomial_rows": ("OnlinePolynomialRows", "PolynomialRows", "polynomial_regression"),
        "dynid.run.actuator_options": ("ActuatorSettings",),
        "dynid.run.actuators": ("identify_actuators",),
        "dynid.simulation": ("simulate",),
        "dynid.simulation.builtin": ("demo_recording", "demo_samples"),
        "dynid.excitation.design": ("Excitation", "design_excitation"),
        "dynid.excitation.points": ("PointsTrajectory", "design_points"),
        "dynid.excitation.fourier": ("FourierShape", "FourierTrajectory"),
        "dynid.excitation.bspline": ("BSplineShape",),
        "dynid.excitation.limits": ("limits_of", "margins_of"),
        "dynid.excitation.collision": ("clearance_of",),
        "dynid.excitation.export": ("write_motion",),
        "dynid.estimation.estimate": ("estimate",),
        "dynid.estimation.result": ("Estimate",),
        "dynid.estimation.outcome": ("Outcome",),
        "dynid.estimation.methods.least_squares": ("OrdinaryLeastSquares",),
        "dynid.estimation.methods.weighted": ("WeightedLeastSquares",),
        "dynid.estimation.methods.robust": ("IteratedReweighted",),
        "dynid.estimation.methods.total": ("TotalLeastSquares",),
        "dynid.estimation.methods.ridge": ("Ridge",),
        "dynid.estimation.methods.essential": ("EssentialParameters",),
        "dynid.estimation.methods.recursive": ("RecursiveLeastSquares",),
        "dynid.estimation.methods.instrumental": ("InstrumentalVariables",),
        "dynid.estimation.methods.sdp": ("FeasibleSDP",),
        "dynid.estimation.methods.manifold": ("Manifold",),
        "dynid.estimation.methods.log_cholesky": ("LogCholesky",),
        "dynid.estimation.convex.feasibility": ("closest_feasible", "feasibility"),
        "dynid.estimation.friction.fit": ("fit_friction", "with_transmitted_load"),
        "dynid.estimation.reverse_engineering": ("LagrangianModel", "Oracle", "reverse_engineer"),
        "dynid.estimation.convex.repair": ("repair",),
        "dynid.estimation.constraints.bounds": ("Bounds",),
        "dynid.estimation.constraints.constraints": (
            "CentreOfMassInBox",
            "CentreOfMassInCylinder",
            "CentreOfMassInHull",
            "CentreOfMassInSphere",
            "DensityInBox",
            "DensityInEllipsoid",
            "EqualLinks",
            "FixedValues",
            "Linear",
            "MassBounds",
            "PositiveEffects",
            "SymmetricLink",
            "TotalMass",
        ),
        "dynid.estimation.retrieval.retrieve": ("PenaltyRetrieval",),
        "dynid.estimation.convex.sdpa": ("write_sdpa",),
        "dynid.validation.consistency": ("check_model",),
        "dynid.validation.data_check": ("check_recording",),
        "dynid.validation.torque": ("Validation", "validate"),
        "dynid.validation.replay": ("replay",),
        "dynid.export.urdf": ("write_urdf",),
        "dynid.export.mjcf": ("write_mjcf",),
        "dynid.export.sdf": ("write_sdf",),
        "dynid.export.vendors": ("vendor_text",),
        "dynid.export.c_source": ("write_c",),
        "dynid.export.sidecar": ("read_sidecar", "write_sidecar"),
        "dynid.run.compare": ("compare",),
        "dynid.run.compare_runs": ("ComparedRuns", "compare_runs"),
        "dynid.run.export": ("export_run",),
        "dynid.run.identify": ("identify",),
        "dynid.run.options": ("Settings",),
        "dynid.run.payload": ("identify_payload",),
        "dynid.run.gains": ("identify_gains",),
        "dynid.run.sensor": ("SensorOptions", "identify_sensor_body"),
        "dynid.run.sensor_run": ("SensorRun", "identify_sensor"),
        "dynid.run.record": ("Run",),
        "dynid.run.rows": ("register_rows",),
        "dynid.run.store": ("load_run", "save_run"),
        "dynid.run.unseen": ("validate_run",),
        "dynid.fleet.add": ("add_to_store",),
        "dynid.fleet.store": ("Store", "open_store"),
        "dynid.fleet.identify": ("identify_store",),
        "dynid.fleet.judge": ("Fleet", "judge_fleet"),
        "dynid.report.fleet_report": ("report_fleet",),
        "dynid.watch.flow": ("WatchOptions",),
        "dynid.watch.watcher": ("Watcher",),
        "dynid.publish.publish": ("publish_run",),
        "dynid.report.page": ("Section",),
        "dynid.report.run_report": ("register_section", "report_run", "unregister_section"),
        "dynid.estimation.friction.choice": ("choose_friction",),
    },
    own=["__version__"],
)

FAMILIES = ("constraints", "effects", "excitation", "feasible", "friction", "methods", "rows", "steps")
"""Modules with every public name of one kind; each loads its names when they are first used."""


def __getattr__(name: str) -> Any:
    return import_module(f"dynid.{name}") if name in FAMILIES else _OFFERED.load(name)


def __dir__() -> list[str]:
    return sorted([*_OFFERED.names, *FAMILIES])
