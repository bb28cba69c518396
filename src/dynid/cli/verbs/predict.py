"""``dynid predict``: torque of a log as the model of a run predicts it, with its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli.console import percent, show, show_json
from dynid.cli.schema import AsJson, LogFiles, takes_options
from dynid.option_types import options_of
from dynid.pipeline.option_groups import READING
from dynid.pipeline.options import Settings


@takes_options(options_of(Settings, READING))
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    logs: LogFiles,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write: .parquet, .csv, .npz or .mcap; of several logs each has its number.",
        ),
    ] = Path("torque.parquet"),
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Write the torque of a log as the run predicts it: measured, predicted, residual, inertia, Coriolis, gravity, friction, rotor.

    Columns are named QUANTITY_JOINT, such as predicted_elbow; an .mcap file has a topic for each joint, for Foxglove and PlotJuggler.

    Example: [bold]dynid predict run log.parquet -o torque.parquet[/bold]
    """
    import numpy as np

    from dynid.pipeline.folder import load_result
    from dynid.pipeline.predict import check_suffix, predict_logs, write_predictions

    check_suffix(output)
    found = predict_logs(load_result(run), logs, **(given or {}))
    files = write_predictions(found, output)
    errors = [
        float(np.linalg.norm(one.values["residual"]) / np.linalg.norm(one.values["measured"]))
        if "residual" in one.values
        else None
        for one in found
    ]
    if json:
        show_json(
            {
                "files": [str(path) for path in files],
                "relative_error_raw": errors,
                "n_samples": [len(one.time) for one in found],
            }
        )
        return
    for one, path, error in zip(found, files, errors, strict=True):
        left = "" if error is None else f", {percent(error)} of the recorded torque left"
        show(f"{len(one.time)} samples of {len(one.joint_names)} joints{left}, written to {path}")
