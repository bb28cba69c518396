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
    RANK_DEFICIENT = (
        "the data do not determine every base parameter: the others keep their prior value; record a richer motion to "
        "determine them"
    )
    NOT_CONVERGED = (
        "the iteration stopped at its limit before it converged; the result is its last iterate: compare it with that of another "
        "method (dynid compare), or raise the limit (iterations of the method, in Python)"
    )
    INFEASIBLE = "no physically consistent parameter set meets the constraints; relax the one named in the notes"
    STALLED = "the solver stopped before it reached its tolerance; the result is verified but may not be optimal: loosen the constraints"

    @property
    def usable(self) -> bool:
        """Whether there is a parameter set to use."""
        return self is not Outcome.INFEASIBLE
