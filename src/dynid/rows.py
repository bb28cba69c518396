"""Row sources: physical statements that are linear in the parameters, ``y = W phi``, and how to add your own.

A row source makes the rows; :func:`factorise` reduces them to a small triangle that every estimator works on:

    >>> import dynid
    >>> robot, samples = dynid.demo_robot(), dynid.demo_samples(seconds=4.0)
    >>> rows = dynid.rows.TorqueRows(robot, (samples,))
    >>> data = dynid.rows.factorise(rows)
    >>> data.n_rows == samples.torque.size
    True

``FilteredRows`` puts a filter around any source. A source of your own derives from :class:`Rows` (see
:mod:`dynid.regression.source`) and is made known to ``dynid identify --rows NAME`` by :func:`register_rows`.

``RowKind``: a kind of rows: its ``name``, a function ``make(plan, robot, samples)`` that makes the source, and ``of_recorded``,
whether it takes signals as recorded instead of filtered ones.

    >>> kind = dynid.rows.RowKind("plain", lambda plan, robot, samples: dynid.rows.TorqueRows(robot, tuple(samples)))
    >>> kind.of_recorded
    False

``register_rows``: makes a ``kind`` of rows known under its name, on the command line too.

    >>> dynid.rows.register_rows(kind)

``row_kinds``: names of all kinds of rows.

    >>> dynid.rows.row_kinds()[:3]
    ('torque', 'energy', 'polynomial')
"""

from __future__ import annotations

from typing import Any

from dynid.lazy import Offered

_OFFERED = Offered(
    __name__,
    {
        "dynid.parameters": ("Column",),
        "dynid.regression.channels": ("Channel", "full_channel"),
        "dynid.recording.commands": ("Command", "PositionControl"),
        "dynid.regression.command_rows": ("CommandRows", "CommandSamples"),
        "dynid.regression.energy_rows": ("EnergyRows",),
        "dynid.regression.factor": ("factorise",),
        "dynid.regression.matrix_rows": ("MatrixRows",),
        "dynid.regression.polynomial_rows": ("OnlinePolynomialRows", "PolynomialRows"),
        "dynid.regression.row_filter": ("BandLimit", "FilterAndDecimate", "FilteredRows"),
        "dynid.regression.source": ("Chunk", "RowSource", "Rows"),
        "dynid.regression.static_rows": ("StaticRows",),
        "dynid.regression.torque_rows": ("TorqueRows",),
        "dynid.regression.wrench_rows": ("WrenchRows",),
        "dynid.run.rows": ("RowKind", "register_rows", "row_kinds"),
    },
)


def __getattr__(name: str) -> Any:
    return _OFFERED.load(name)


def __dir__() -> list[str]:
    return _OFFERED.names
