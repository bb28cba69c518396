"""``dynid doctor``: versions, and what is optional and missing."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from dynid.cli.console import show, show_json, show_table
from dynid.cli.options import AsJson

NEEDED = (
    "dynid",
    "numpy",
    "scipy",
    "numba",
    "pin",
    "clarabel",
    "mujoco",
    "pyarrow",
    "plotly",
    "typer",
    "rich",
    "defusedxml",
)
OPTIONAL = {
    "mcap": ("ros", "MCAP logs"),
    "mcap-ros2-support": ("ros", "ROS 2 messages in MCAP logs"),
    "rosbags": ("ros", "ROS 2 .db3 and ROS 1 .bag logs"),
    "dask": ("dask", "runs on a cluster"),
    "xacro": (None, "xacro robot descriptions"),
}


def doctor(json: AsJson = False) -> None:
    """Versions of the packages that dynid uses, and optional packages that are missing.

    Example: [bold]dynid doctor[/bold]
    """
    needed = {name: _version(name) for name in NEEDED}
    optional = {name: _version(name) for name in OPTIONAL}
    missing = [name for name, found in needed.items() if found is None]
    if json:
        show_json({"python": platform.python_version(), "needed": needed, "optional": optional, "healthy": not missing})
        return
    rows = [("python", platform.python_version(), ""), *((name, found or "MISSING", "") for name, found in needed.items())]
    for name, (extra, purpose) in OPTIONAL.items():
        install = f"pip install 'dynid[{extra}]'" if extra else f"pip install {name}"
        rows.append((name, optional[name] or "-", purpose if optional[name] else f"{purpose}: {install}"))
    show_table(("package", "version", ""), rows, text=(0, 2))
    show("healthy" if not missing else f"missing: {', '.join(missing)}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
