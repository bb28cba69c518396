"""The samples of a loaded run, made again from its own logs where these are unchanged."""

from __future__ import annotations

from dataclasses import replace

from dynid.io.logs.log_file import log_path
from dynid.pipeline.data import open_logs, open_unseen, split_data, unchanged
from dynid.pipeline.estimate_rows import row_source
from dynid.pipeline.log import Data, Logs
from dynid.pipeline.option_groups import FLOATING
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.validate import with_errors
from dynid.regression.factor import factorise


def with_logs(run: IdentificationResult) -> IdentificationResult:
    """A loaded run with its samples and regression made again from its logs; as it is where a log is gone or has changed.

    Errors on logs that are too long to hold stay as they were found.
    """
    if run.rows.kind == FLOATING:
        from dynid.pipeline.identify_floating import with_floating_logs

        return with_floating_logs(run)
    files = [*run.logs, *run.validation_logs]
    if run.filter is None or not all(unchanged(log_path(path), digest) for path, digest in files):
        return run
    settings, others = run.settings, [log_path(path) for path, _ in run.validation_logs]
    if not run.logs:  # retrieved from coefficients: there is nothing to validate on but these
        unseen = open_unseen(run.robot, others, settings, in_memory=True) if others else None
        if unseen is None:
            return run
        judged = unseen.filtered(run.filter, settings.max_rows).under_load(run.model)
        return replace(run, data=Data(unseen.without_rows(), unseen.without_rows(), judged))
    found = open_logs(run.robot, [log_path(path) for path, _ in run.logs], settings)
    assert isinstance(found, Logs)
    data = split_data(found, run.robot, settings, others).filtered(run.filter, settings.max_rows)
    unseen = None if data.unseen is None else data.unseen.under_load(run.model)
    data = replace(data, known=data.known.under_load(run.model), unseen=unseen)
    if not data.known.in_memory:
        return replace(run, data=data)
    regression = factorise(row_source(run.rows, run.robot, data.known))
    return replace(with_errors(replace(run, data=data, regression=regression)), notes=run.notes)
