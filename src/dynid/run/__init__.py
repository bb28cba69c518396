"""The whole path composed once: logs in, a validated model out; saved and loaded as plain files."""

from dynid.run.compare import Compared, compare, compare_on
from dynid.run.config import RunFile, read_run_file, write_run_file
from dynid.run.demo import Demo, run_demo
from dynid.run.export import export_run, read_exports
from dynid.run.identify import Run, identify, unseen_samples, validate_run
from dynid.run.inspect import inspect_log
from dynid.run.payload import Payload, identify_payload
from dynid.run.publish import Published, publish_run
from dynid.run.repairing import repair_model
from dynid.run.report import report_run
from dynid.run.settings import Settings
from dynid.run.simulation import simulate_log
from dynid.run.store import load_run, read_model, save_run

__all__ = [
    "Compared",
    "Demo",
    "Payload",
    "Published",
    "Run",
    "RunFile",
    "Settings",
    "compare",
    "compare_on",
    "export_run",
    "identify",
    "identify_payload",
    "inspect_log",
    "load_run",
    "publish_run",
    "read_exports",
    "read_model",
    "read_run_file",
    "repair_model",
    "report_run",
    "run_demo",
    "save_run",
    "simulate_log",
    "unseen_samples",
    "validate_run",
    "write_run_file",
]
