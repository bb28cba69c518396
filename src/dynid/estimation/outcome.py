"""How an estimation ended; the text of each member is the advice to its reader."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """How an estimation ended; the text of each member is the advice to the user.

    Examples:
        >>> import dynid
        >>> dynid.Outcome.SOLVED.usable, dynid.Outcome.INFEASIBLE.usable
        (True, False)
    """

    SOLVED = "solved"
    RANK_DEFICIENT = "the data do not show every base parameter: those not seen keep their prior value; record a richer motion to know them"
    NOT_CONVERGED = "the iteration stopped at its limit before it settled; the result is its last iterate: raise the limit, clean the data"
    INFEASIBLE = "no physically consistent parameter set meets the constraints; relax the one named in the notes"
    STALLED = (
        "the solver stopped short of its tolerance; the result is verified but may not be the best: loosen the constraints"
    )

    @property
    def usable(self) -> bool:
        """Whether there is a parameter set to use."""
        return self is not Outcome.INFEASIBLE
