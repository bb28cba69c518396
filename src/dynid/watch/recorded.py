"""Reports as JSON messages of an MCAP file, for Foxglove, rerun and others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.adapters.mcap_stream import JsonWriter

TOPIC = "/dynid/estimate"
_NUMBERS = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dynid.Estimate",
    "type": "object",
    "properties": {
        "t": {"type": "number", "description": "stamp of the newest row, s"},
        "values": _NUMBERS,
        "sigma": _NUMBERS,
        "flags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "residual": {"type": "number", "description": "root mean square torque that the values leave, N m or N"},
        "residual_of_joints": _NUMBERS,
        "alarm": {"type": ["object", "null"]},
        "drift": {"type": "string"},
    },
    "required": ["t", "values", "sigma", "flags", "residual", "alarm"],
}


class Recorder:
    """Writes reports; their time in the file is the stamp of the newest row."""

    def __init__(self, path: Path) -> None:
        self._writer = JsonWriter(path, TOPIC, SCHEMA)

    def write(self, report: Mapping[str, Any]) -> None:
        """One report."""
        self._writer.write(report["t"], report)

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
