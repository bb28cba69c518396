"""What a store holds, robot by robot, without its triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.fleet.choice import Choice
from dynid.fleet.entry import Entry
from dynid.fleet.store import Store


def contents_of(store: Store, choice: Choice | None = None) -> dict[str, Any]:
    """Rows of every robot: days, conditions, seconds of motion, held-out error; and what the store has fixed."""
    run = store.run
    by_robot = dict((choice or Choice()).by_robot(store, light=True)) if store.robots else {}
    return {
        "store": str(store.folder),
        "robot": run.robot.name,
        "fixed": store.fixed,
        "filter": None if run.filter is None else run.filter.describe(),
        "rows": run.rows.kind,
        "effects": [effect.label for effect in run.robot.effects],
        "n_rows": sum(len(own) for own in by_robot.values()),
        "robots": [_robot(name, own) for name, own in by_robot.items()],
    }


def _robot(name: str, entries: list[Entry]) -> dict[str, Any]:
    days = sorted({entry.key.day for entry in entries})
    errors = [entry.held_out_error for entry in entries if np.isfinite(entry.held_out_error)]
    return {
        "id": name,
        "rows": len(entries),
        "logs": sum(len(entry.logs) for entry in entries),
        "days": len(days),
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "conditions": sorted({f"{key}={value}" for entry in entries for key, value in entry.key.condition.items()}),
        "seconds": float(sum(entry.seconds for entry in entries)),
        "held_out_error": float(np.median(errors)) if errors else None,
    }
