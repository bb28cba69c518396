"""Tables of ``loads.md``: what each vendor's form holds of a load."""

from __future__ import annotations

from dynid.io.vendors import FORMS, vendor_text
from tables_of import markdown

LOAD = (2.0, 0.0, 0.0, 0.1, 0.02, 0.0, 0.02, 0.0, 0.0, 0.01)
"""2 kg, its centre 50 mm before the flange; its inertia is a guess."""


def mass_and_centre_alone() -> str:
    """What is written, form by form, where mass and centre of mass are all that is known."""
    rows = []
    for name, form in FORMS.items():
        written = vendor_text(name, LOAD, form.links[0] if form.links else "tool0", inertia_known=False)
        lines = "<br>".join(f"`{line.strip()}`" for line in written.text.splitlines())
        rows.append(
            (f"`{name}`", lines, form.without_inertia or "the consistent body nearest to the data: a simulator needs one")
        )
    return markdown(("`--format`", "written for 2 kg, 50 mm before the flange", "inertia"), rows, words=3)
