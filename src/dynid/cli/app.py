"""The verbs, gathered. Nothing heavy is imported here: ``dynid --help`` must answer at once."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.console import log_to_stderr, show
from dynid.cli.schema import takes_quiet
from dynid.cli.verbs.actuators import actuators
from dynid.cli.verbs.base import base
from dynid.cli.verbs.check import check
from dynid.cli.verbs.compare import compare
from dynid.cli.verbs.compare_runs import compare_runs
from dynid.cli.verbs.data import data
from dynid.cli.verbs.demo import demo
from dynid.cli.verbs.doctor import doctor
from dynid.cli.verbs.excite import excite
from dynid.cli.verbs.export import export
from dynid.cli.verbs.fleet import fleet
from dynid.cli.verbs.gains import gains
from dynid.cli.verbs.identify import identify
from dynid.cli.verbs.init import init
from dynid.cli.verbs.payload import payload
from dynid.cli.verbs.repair import repair
from dynid.cli.verbs.report import report
from dynid.cli.verbs.simulate import simulate
from dynid.cli.verbs.store import store
from dynid.cli.verbs.validate import validate
from dynid.cli.verbs.watch import watch

app = typer.Typer(
    name="dynid",
    help="Robot dynamic identification: from a robot description and logs of its motion to a validated dynamic model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from dynid import __version__

        show(f"dynid {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    log_to_stderr()


for verb in (
    demo,
    init,
    doctor,
    data,
    base,
    check,
    repair,
    excite,
    simulate,
    identify,
    validate,
    compare,
    compare_runs,
    payload,
    gains,
    actuators,
    watch,
    export,
    report,
    fleet,
):
    app.command()(takes_quiet(verb))
app.add_typer(store, name="store")
