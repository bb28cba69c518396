"""What the model lacks, as the residual on held-out blocks shows it."""

from __future__ import annotations

from dynid.report.page import Section, Table
from dynid.report.shown import Shown
from dynid.report.verdict import percent


def advice_section(shown: Shown) -> Section | None:
    """The additions that would lower the error on unseen data, with the option of each; nothing where there are none."""
    advice = shown.run.advice
    if not advice:
        return None
    rows = tuple((one.joint, one.cause, percent(one.gain), one.option or "none models this") for one in advice)
    table = Table(("joint", "what its residual follows", "held-out error falls by", "option"), rows, numeric=(2,))
    text = (
        "Each addition was fitted with a block of time left out, for every block in turn; shown is by how much the error on the "
        "blocks left out falls."
    )
    return Section("Advice", text, (table,))
