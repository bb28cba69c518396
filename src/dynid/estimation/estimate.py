"""``estimate``: parameters from a regression by any method."""

from __future__ import annotations

from dataclasses import replace

from dynid.errors import InputError
from dynid.estimation.constraints.shapes import boxes_of
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Estimate, Method
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

__all__ = ["Estimate", "Method", "estimate"]


def estimate(
    regression: Regression, base: BaseReduction, method: Method | None = None, prior: Parameters | None = None
) -> Estimate:
    """Estimate parameters from a regression.

    Args:
        regression: of any row source.
        base: base parameters of the robot.
        method: a method, such as ``dynid.WeightedLeastSquares()``; None for that of :func:`dynid.identify`, see :func:`default_method`.
        prior: completes what the data do not determine and decides how base values are shared among links; None for the
            nominal parameters of the robot.

    Returns:
        base values with their covariance, one standard set that has them, and how well it fits; SI units.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data = dynid.build_regression(robot, samples)
        >>> result = dynid.estimate(data, dynid.reduce_to_base(robot))
        >>> result.method, result.feasible
        ('sdp', True)
        >>> dynid.estimate(data, dynid.reduce_to_base(robot), dynid.OrdinaryLeastSquares()).method
        'ols'
    """
    start = regression.parameters if prior is None else prior
    if start.names != regression.parameters.names:
        raise InputError(
            f"the prior has {len(start)} parameters, the regression {len(regression.parameters)}, or other names"
        )
    if not regression.torque_norms.any():
        raise InputError(
            f"the right-hand side (torque) is zero in all {regression.n_rows} rows, so nothing can be estimated; "
            "expected rows with measured torque"
        )
    result = (method or default_method(regression)).estimate(regression, base, start)
    # A link that the description leaves out weighs nothing, whatever a method gave it to be consistent by: no row sees it.
    absent = set(regression.robot.absent) if regression.has_robot else set()
    if not absent:
        return result
    names = result.standard.names[: result.standard.n_inertial]
    links = [names[i : i + 10] for i in range(0, len(names), 10)]
    massless = {name: 0.0 for link in links if absent.issuperset(link) for name in link}
    return replace(result, standard=result.standard.updated(massless))


def default_method(regression: Regression) -> FeasibleSDP:
    """The method that ``dynid identify`` takes by default: every link consistent, joints weighted by their noise, held by the
    description and the boxes around its shapes as far as the data allow."""
    boxes, notes = boxes_of(regression.robot) if regression.has_robot else ((), ())
    return FeasibleSDP(prior="auto", weighted=True, boxes=boxes, box_notes=notes)
