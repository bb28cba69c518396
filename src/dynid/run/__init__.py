"""The whole path composed once: logs in, a validated model out; saved and loaded as plain files."""

from dynid.run.demo import Demo, run_demo
from dynid.run.export import export_run
from dynid.run.identify import Run, identify, validate_run
from dynid.run.inspect import inspect_log
from dynid.run.publish import Published, publish_run
from dynid.run.report import report_run
from dynid.run.settings import Settings
from dynid.run.simulation import simulate_log
from dynid.run.store import load_run, read_model, save_run

__all__ = [
    "Demo",
    "Published",
    "Run",
    "Settings",
    "export_run",
    "identify",
    "inspect_log",
    "load_run",
    "publish_run",
    "read_model",
    "report_run",
    "run_demo",
    "save_run",
    "simulate_log",
    "validate_run",
]
