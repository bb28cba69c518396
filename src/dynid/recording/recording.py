"""Every kind of recording under one name to import from: motion, pose table, force/torque sensor, stream.

All quantities are SI at the joint side of the gearbox; rows are samples, columns are joints in the robot's order.
"""

from __future__ import annotations

from dynid.recording.motion import Recording
from dynid.recording.poses import StaticRecording
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY, LARGEST, beyond
from dynid.recording.source import Part, RecordingSource
from dynid.recording.stream import RecordingChunk, RecordingStream
from dynid.recording.wrench import WrenchRecording
from dynid.recording.write import write_recording

__all__ = [
    "COLUMN_OF_BODY_MOTION",
    "COLUMN_OF_QUANTITY",
    "LARGEST",
    "Part",
    "Recording",
    "RecordingChunk",
    "RecordingSource",
    "RecordingStream",
    "StaticRecording",
    "WrenchRecording",
    "beyond",
    "write_recording",
]
