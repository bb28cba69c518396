"""Robot dynamic identification: from a robot description and logs of its motion to a physically consistent dynamic model.

    import dynid
    robot   = dynid.read_robot("arm.urdf")
    base    = dynid.reduce_to_base(robot)
    samples = dynid.process(dynid.read_recording("run.parquet", robot), [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()])
    result  = dynid.estimate(dynid.build_regression(robot, samples), base)

Every public name is here, loaded when it is first used, so that importing the package costs nothing. What a program that
adds effects, steps, rows or motions of its own needs besides is imported from the room it stands in, such as
``dynid.model.effects`` or ``dynid.excitation.shapes``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers and editors see: the names below; written by tests/public_names.py
    # isort: off
    from dynid.pipeline.identify import identify as identify
    from dynid.pipeline.options import Settings as Settings
    from dynid.pipeline.result import IdentificationResult as IdentificationResult
    from dynid.pipeline.folder import load_result as load_result
    from dynid.pipeline.compare import compare as compare, compare_results as compare_results
    from dynid.pipeline.report import register_section as register_section
    from dynid.report.page import Section as Section
    from dynid.finding import Finding as Finding, Verdict as Verdict
    from dynid.validation.prediction import validate as validate
    from dynid.validation.replay import replay as replay
    from dynid.errors import (
        DynidError as DynidError,
        DynidWarning as DynidWarning,
        InconsistentModelError as InconsistentModelError,
        InputError as InputError,
    )
    from dynid.io.demo import demo_recording as demo_recording, demo_robot as demo_robot, demo_samples as demo_samples
    from dynid.io.robots.read import read_robot as read_robot
    from dynid.model.coupling import Coupling as Coupling
    from dynid.model.frames import Frame as Frame, link_motion as link_motion
    from dynid.model.joint import Joint as Joint
    from dynid.model.parameters import Parameters as Parameters
    from dynid.model.robot import Robot as Robot, make_robot as make_robot
    from dynid.model.effects.dry_friction import Coulomb as Coulomb
    from dynid.model.effects.effect import Effect as Effect
    from dynid.model.effects.friction_models import register_friction_model as register_friction_model
    from dynid.model.effects.jointwise import Coefficient as Coefficient, JointwiseEffect as JointwiseEffect
    from dynid.model.effects.linear import Armature as Armature, Offset as Offset, Viscous as Viscous
    from dynid.model.effects import effects_from_names as effects_from_names, register_effect as register_effect
    from dynid.io.logs.formats import register_format as register_format
    from dynid.io.logs.read import read_recording as read_recording, write_recording as write_recording
    from dynid.signals.process import process as process
    from dynid.signals.recording import Recording as Recording
    from dynid.signals.samples import Samples as Samples
    from dynid.signals.steps.clock import Resample as Resample
    from dynid.signals.steps.filters import (
        Differentiate as Differentiate,
        LowPass as LowPass,
        SavitzkyGolay as SavitzkyGolay,
    )
    from dynid.signals.steps.step import Step as Step
    from dynid.validation.data_check import check_recording as check_recording
    from dynid.dynamics.inverse_dynamics import inverse_dynamics as inverse_dynamics
    from dynid.dynamics.regressors import (
        body_regressor as body_regressor,
        energy_regressor as energy_regressor,
        static_regressor as static_regressor,
        torque_regressor as torque_regressor,
    )
    from dynid.pipeline.row_plan import RowKind as RowKind, register_rows as register_rows
    from dynid.regression.base import BaseReduction as BaseReduction, reduce_to_base as reduce_to_base
    from dynid.regression.energy_rows import energy_regression as energy_regression
    from dynid.regression.factor import (
        Regression as Regression,
        build_regression as build_regression,
        factorise as factorise,
    )
    from dynid.regression.row_filter import BandLimit as BandLimit, FilteredRows as FilteredRows
    from dynid.regression.row_source import RowSource as RowSource
    from dynid.regression.torque_rows import TorqueRows as TorqueRows
    from dynid.estimation.estimate import estimate as estimate
    from dynid.estimation.friction.selection import choose_friction as choose_friction
    from dynid.estimation.methods.essential import EssentialParameters as EssentialParameters
    from dynid.estimation.methods.instrumental import InstrumentalVariables as InstrumentalVariables
    from dynid.estimation.methods.least_squares import (
        OrdinaryLeastSquares as OrdinaryLeastSquares,
        WeightedLeastSquares as WeightedLeastSquares,
        Ridge as Ridge,
        IteratedReweighted as IteratedReweighted,
    )
    from dynid.estimation.methods.manifold import LogCholesky as LogCholesky, Manifold as Manifold
    from dynid.estimation.methods.recursive import RecursiveLeastSquares as RecursiveLeastSquares
    from dynid.estimation.methods.registry import method_named as method_named, register_method as register_method
    from dynid.estimation.methods.retrieval import PenaltyRetrieval as PenaltyRetrieval
    from dynid.estimation.methods.sdp import FeasibleSDP as FeasibleSDP
    from dynid.estimation.methods.total import TotalLeastSquares as TotalLeastSquares
    from dynid.estimation.oracle import reverse_engineer as reverse_engineer
    from dynid.estimation.result import Estimate as Estimate, Method as Method, Outcome as Outcome
    from dynid.estimation.consistency.correction import closest_feasible as closest_feasible
    from dynid.estimation.consistency.feasibility import feasibility as feasibility
    from dynid.estimation.consistency.repair import repair as repair
    from dynid.estimation.consistency.sdpa import write_sdpa as write_sdpa
    from dynid.estimation.constraints.base import Constraint as Constraint
    from dynid.estimation.constraints.bodies import (
        CentreOfMassInBox as CentreOfMassInBox,
        MassBounds as MassBounds,
        TotalMass as TotalMass,
    )
    from dynid.estimation.constraints.bounds import constraints_from_table as constraints_from_table
    from dynid.model.inertia import is_consistent as is_consistent
    from dynid.pipeline.base_check import check_base as check_base, read_base_values as read_base_values
    from dynid.validation.consistency import check_model as check_model
    from dynid.dynamics.simulate import simulate as simulate
    from dynid.excitation.command import design_excitation as design_excitation
    from dynid.excitation.excitation_result import Excitation as Excitation
    from dynid.excitation.limits import limits_of as limits_of
    from dynid.excitation.motion_files import read_trajectory as read_trajectory, write_motion as write_motion
    from dynid.io.code.languages import write_c as write_c
    from dynid.io.robots.mjcf_write import write_mjcf as write_mjcf
    from dynid.io.robots.sdf_write import write_sdf as write_sdf
    from dynid.io.robots.urdf_write import write_urdf as write_urdf
    from dynid.pipeline.robot_json import read_parameters as read_parameters, write_parameters as write_parameters
    from dynid.apps.actuators.identify import identify_actuators as identify_actuators
    from dynid.apps.fleet.add import add_to_store as add_to_store
    from dynid.apps.fleet.identify import identify_store as identify_store
    from dynid.apps.fleet.judge import judge_fleet as judge_fleet
    from dynid.apps.fleet.store import open_store as open_store
    from dynid.apps.gains.gains import identify_gains as identify_gains
    from dynid.apps.online.watcher import Watcher as Watcher
    from dynid.apps.payload.load import identify_payload as identify_payload
    # isort: on

try:
    __version__ = version("dynid")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

_MODULES = {
    # a run, and what is said of it
    "dynid.pipeline.identify": ("identify",),
    "dynid.pipeline.options": ("Settings",),
    "dynid.pipeline.result": ("IdentificationResult",),
    "dynid.pipeline.folder": ("load_result",),
    "dynid.pipeline.compare": ("compare", "compare_results"),
    "dynid.pipeline.report": ("register_section",),
    "dynid.report.page": ("Section",),
    "dynid.finding": ("Finding", "Verdict"),
    "dynid.validation.prediction": ("validate",),
    "dynid.validation.replay": ("replay",),
    "dynid.errors": ("DynidError", "DynidWarning", "InconsistentModelError", "InputError"),
    # robots and effects
    "dynid.io.demo": ("demo_recording", "demo_robot", "demo_samples"),
    "dynid.io.robots.read": ("read_robot",),
    "dynid.model.coupling": ("Coupling",),
    "dynid.model.frames": ("Frame", "link_motion"),
    "dynid.model.joint": ("Joint",),
    "dynid.model.parameters": ("Parameters",),
    "dynid.model.robot": ("Robot", "make_robot"),
    "dynid.model.effects.dry_friction": ("Coulomb",),
    "dynid.model.effects.effect": ("Effect",),
    "dynid.model.effects.friction_models": ("register_friction_model",),
    "dynid.model.effects.jointwise": ("Coefficient", "JointwiseEffect"),
    "dynid.model.effects.linear": ("Armature", "Offset", "Viscous"),
    "dynid.model.effects": ("effects_from_names", "register_effect"),
    # logs, and samples made of them
    "dynid.io.logs.formats": ("register_format",),
    "dynid.io.logs.read": ("read_recording", "write_recording"),
    "dynid.signals.process": ("process",),
    "dynid.signals.recording": ("Recording",),
    "dynid.signals.samples": ("Samples",),
    "dynid.signals.steps.clock": ("Resample",),
    "dynid.signals.steps.filters": ("Differentiate", "LowPass", "SavitzkyGolay"),
    "dynid.signals.steps.step": ("Step",),
    "dynid.validation.data_check": ("check_recording",),
    # rows, and what they are reduced to
    "dynid.dynamics.inverse_dynamics": ("inverse_dynamics",),
    "dynid.dynamics.regressors": ("body_regressor", "energy_regressor", "static_regressor", "torque_regressor"),
    "dynid.pipeline.row_plan": ("RowKind", "register_rows"),
    "dynid.regression.base": ("BaseReduction", "reduce_to_base"),
    "dynid.regression.energy_rows": ("energy_regression",),
    "dynid.regression.factor": ("Regression", "build_regression", "factorise"),
    "dynid.regression.row_filter": ("BandLimit", "FilteredRows"),
    "dynid.regression.row_source": ("RowSource",),
    "dynid.regression.torque_rows": ("TorqueRows",),
    # estimators
    "dynid.estimation.estimate": ("estimate",),
    "dynid.estimation.friction.selection": ("choose_friction",),
    "dynid.estimation.methods.essential": ("EssentialParameters",),
    "dynid.estimation.methods.instrumental": ("InstrumentalVariables",),
    "dynid.estimation.methods.least_squares": (
        "OrdinaryLeastSquares",
        "WeightedLeastSquares",
        "Ridge",
        "IteratedReweighted",
    ),
    "dynid.estimation.methods.manifold": (
        "LogCholesky",
        "Manifold",
    ),
    "dynid.estimation.methods.recursive": ("RecursiveLeastSquares",),
    "dynid.estimation.methods.registry": ("method_named", "register_method"),
    "dynid.estimation.methods.retrieval": ("PenaltyRetrieval",),
    "dynid.estimation.methods.sdp": ("FeasibleSDP",),
    "dynid.estimation.methods.total": ("TotalLeastSquares",),
    "dynid.estimation.oracle": ("reverse_engineer",),
    "dynid.estimation.result": ("Estimate", "Method", "Outcome"),
    # physical consistency
    "dynid.estimation.consistency.correction": ("closest_feasible",),
    "dynid.estimation.consistency.feasibility": ("feasibility",),
    "dynid.estimation.consistency.repair": ("repair",),
    "dynid.estimation.consistency.sdpa": ("write_sdpa",),
    "dynid.estimation.constraints.base": ("Constraint",),
    "dynid.estimation.constraints.bodies": ("CentreOfMassInBox", "MassBounds", "TotalMass"),
    "dynid.estimation.constraints.bounds": ("constraints_from_table",),
    "dynid.model.inertia": ("is_consistent",),
    "dynid.pipeline.base_check": ("check_base", "read_base_values"),
    "dynid.validation.consistency": ("check_model",),
    # motions, simulation and model files
    "dynid.dynamics.simulate": ("simulate",),
    "dynid.excitation.command": ("design_excitation",),
    "dynid.excitation.excitation_result": ("Excitation",),
    "dynid.excitation.limits": ("limits_of",),
    "dynid.excitation.motion_files": ("read_trajectory", "write_motion"),
    "dynid.io.code.languages": ("write_c",),
    "dynid.io.robots.mjcf_write": ("write_mjcf",),
    "dynid.io.robots.sdf_write": ("write_sdf",),
    "dynid.io.robots.urdf_write": ("write_urdf",),
    "dynid.pipeline.robot_json": ("read_parameters", "write_parameters"),
    # applications
    "dynid.apps.actuators.identify": ("identify_actuators",),
    "dynid.apps.fleet.add": ("add_to_store",),
    "dynid.apps.fleet.identify": ("identify_store",),
    "dynid.apps.fleet.judge": ("judge_fleet",),
    "dynid.apps.fleet.store": ("open_store",),
    "dynid.apps.gains.gains": ("identify_gains",),
    "dynid.apps.online.watcher": ("Watcher",),
    "dynid.apps.payload.load": ("identify_payload",),
}
"""Public names by the module that defines them."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE_OF)

if not TYPE_CHECKING:  # with it every name would be there

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'dynid' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return ["__version__", *__all__]
