"""The package xacro in a process of its own, for files that the user trusts: its expressions are code.

The process has limits of time and memory, no environment, and no other files; it is no sandbox.

python -m dynid.io.robots.xacro_child ROBOT.xacro > robot.urdf
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dynid.errors import InputError, MissingPackageError

SECONDS = 10
MOST_BYTES = 2 * 2**30
PACKAGES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
"""The only variables that are handed on: where ``$(find package)`` looks."""


def expand_trusted(path: Path) -> bytes:
    """What the package xacro makes of the file, in a process of its own: its expressions are code."""
    if importlib.util.find_spec("xacro") is None:
        raise MissingPackageError("xacro", f"robot file '{path}' with --trust-xacro")
    known = {name: os.environ[name] for name in (*PACKAGES, "PATH") if name in os.environ}
    if os.environ.get("PYTHONPATH"):  # that of ROS; its folders are meant from here
        folders = os.environ["PYTHONPATH"].split(os.pathsep)
        known["PYTHONPATH"] = os.pathsep.join(str(Path(one).absolute()) for one in folders if one)
    # -P and an empty folder: no module that lies beside the description, such as a resource.py, is taken for Python's own
    command = [sys.executable, "-P", "-m", "dynid.io.robots.xacro_child", str(path.resolve())]
    try:
        with tempfile.TemporaryDirectory() as empty:
            ended = subprocess.run(command, capture_output=True, check=False, env=known, timeout=10 * SECONDS, cwd=empty)
    except subprocess.TimeoutExpired:
        raise InputError(f"robot file '{path}' cannot be expanded by xacro: it takes more than {10 * SECONDS} s") from None
    if ended.returncode:
        reason = ended.stderr.decode(errors="replace").strip().splitlines()
        why = reason[-1][:300] if reason and ended.returncode > 0 else f"it takes more than {SECONDS} s or too much memory"
        raise InputError(f"robot file '{path}' cannot be expanded by xacro: {why}")
    return ended.stdout


def main() -> None:
    """Expand the file named on the command line; a reason goes to stderr."""
    import resource

    import xacro

    path = Path(sys.argv[1]).resolve()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    _guard(path.parent)
    try:
        document = xacro.process_file(str(path))
        sys.stdout.buffer.write(document.toxml(encoding="utf-8"))
    except BaseException as error:  # expressions in the file may raise anything
        sys.stderr.write(next(iter(str(error).strip().splitlines()), type(error).__name__))
        sys.exit(3)


def _guard(folder: Path) -> None:
    """Only files below the description's parent folder, of ROS packages and of Python itself are opened, and nothing is started."""
    named = [Path(one).resolve() for name in PACKAGES for one in os.environ.get(name, "").split(os.pathsep) if one]
    allowed = [folder.parent, *named, *(Path(one).resolve() for one in {sys.prefix, sys.base_prefix, *sys.path} if one)]
    if folder.parent == folder.parent.parent:  # the root of the file system is no folder of a robot
        allowed[0] = folder

    def hook(event: str, given: tuple[object, ...]) -> None:
        if event == "open" and isinstance(given[0], str | bytes):
            wanted = Path(os.fsdecode(given[0])).resolve()
            if not any(wanted.is_relative_to(one) for one in allowed):
                raise PermissionError(f"it reads '{wanted}', expected files beside '{folder}'")
        elif event in (
            "os.system",
            "subprocess.Popen",
            "os.exec",
            "os.posix_spawn",
            "os.fork",
            "socket.connect",
            "ctypes.dlopen",
        ):
            raise PermissionError(f"it asks for '{event}', expected a description")

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
