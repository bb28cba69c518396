"""Xacro in a process of its own: its expressions are code, so it has limits of time and memory, no environment, and no other files.

python -m dynid.robot.xacro_child ROBOT.xacro > robot.urdf
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SECONDS = 10
MOST_BYTES = 2 * 2**30
PACKAGES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
"""The only variables that are handed on: where ``$(find package)`` looks."""


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
