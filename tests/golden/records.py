"""What is kept of a command's answer, and when two answers are the same.

Kept are numbers and names under their keys: of sentences the numbers and names in them, of paths the last part; times, versions
and hashes are left out. Two rules compare:

``tight``
    1e-9 relative. A number near zero is measured by its standard deviation where one stands beside it, otherwise by the largest
    number of its list; differences below 1e-12 are rounding. Only on the machine, with the kernels, that wrote the record.
``loose``
    A value with a standard deviation to 1 % of it; every other number to 1e-4, which is what errors agree to, or to 1e-3 of
    itself; numbers of sentences, which are rounded, to 1 %. Elsewhere, and always where a search decides on the way (``chosen``).
"""

from __future__ import annotations

import contextlib
import json
import math
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  its kernels are loaded before anyone asks which they are
from threadpoolctl import threadpool_info

from cli_program import dynid
from golden.cases import BY_NAME, Case, write_workshop
from golden.logs import ARM

RECORDS = Path(__file__).parent / "records"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIGHT, ROUNDING, OF_SIGMA, OF_ERROR, OF_NUMBER, OF_TEXT = 1e-9, 1e-12, 1e-2, 1e-4, 1e-3, 1e-2
LEFT_OUT = re.compile(
    r"seconds|cpu_ms|latency_ms|waiting|stalls|.*hash.*|sha256|versions?|.*version|date|created|command|options|path|folder|page|url"
)
"""Keys of what differs from one run to the next."""
TIMED = re.compile(r"\bcompil")
"""Sentences that are told only where kernels were compiled on the way."""
NAMES = ("grade", "kind", "unit", "expression", "decision", "outcome", "criterion", "model", "friction")
"""Keys of names that may have a space in them."""
IN_TEXT = "in_text"
"""The key of numbers that stood in a sentence."""
JOINTS = {body.joint for body in ARM}
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.]*\.\d)")
_HASH = re.compile(r"(?<![\w.])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}(?![\w])")
_VERSION = re.compile(r"\d+\.\d+\.\d[\w.]*")
_PRINCIPAL = re.compile(r'quat="([^"]*)" diaginertia="([^"]*)"')
_NAME = re.compile(r"[A-Za-z]\w*")
SIZE = 4000
"""Numbers that are kept of a written file."""


class Workshop:
    """A folder in which commands run, each once, those that a command needs before it."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.answers: dict[str, Any] = {}
        write_workshop(here)

    def answer(self, name: str) -> Any:
        """What is kept of a command's answer."""
        if name not in self.answers:
            case = BY_NAME[name]
            for needed in case.needs:
                self.answer(needed)
            self.answers[name] = self._run(case)
        return self.answers[name]

    def _run(self, case: Case) -> Any:
        words = case.words.format(here=self.here, examples=EXAMPLES).split()
        with reading(None if case.stdin is None else self.here / case.stdin):
            done = dynid(*words, "--json", "--quiet")
        if done.returncode != case.code:
            raise AssertionError(f"`dynid {' '.join(words)}` ended with {done.returncode}: {done.stderr}")
        lines = [json.loads(line) for line in done.stdout.splitlines()] if case.stdin else [json.loads(done.stdout)]
        kept = kept_of(lines if case.stdin else lines[0])
        if not case.written:
            return kept
        files = sorted(path for pattern in case.written for path in self.here.glob(pattern) if path.is_file())
        return {"answer": kept, "written": {path.name: numbers_of_file(path) for path in files}}


@contextlib.contextmanager
def reading(path: Path | None) -> Iterator[None]:
    """Standard input of this process is this file."""
    if path is None:
        yield
        return

    class Input:
        buffer = path.open("rb")

    before = sys.stdin
    sys.stdin = Input()  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdin = before
        Input.buffer.close()


def kept_of(value: Any, key: str = "") -> Any:
    """Numbers and names of an answer."""
    if isinstance(value, dict):
        return {name: kept_of(one, name) for name, one in value.items() if not LEFT_OUT.fullmatch(name)}
    if isinstance(value, list):
        return [kept_of(one, key) for one in value if not (isinstance(one, str) and TIMED.search(one))]
    return kept_of_text(value, key) if isinstance(value, str) else value


def kept_of_text(text: str, key: str = "") -> Any:
    """A name as it is, the last part of a path, numbers and names of a sentence."""
    if key in NAMES:
        return text
    if not re.search(r"\s", text):
        return re.sub(r"[0-9a-f]{16,}", "HASH", text.rsplit("/", 1)[-1])
    plain = _VERSION.sub("", _HASH.sub("", re.sub(r"/[^\s'\",;]*", "", text)))
    return {"names": names_in(plain), IN_TEXT: numbers_in(plain)}


def names_in(text: str) -> list[str]:
    """Words of a sentence that are names: of joints, or with a digit or an underscore in them."""
    return [word for word in _NAME.findall(text) if word in JOINTS or re.search(r"\d|[^_]_[^_]", word)]


def numbers_in(text: str) -> list[float]:
    """Numbers of a text that are no part of a name."""
    return [float(found) for found in _NUMBER.findall(text)]


def numbers_of_file(path: Path) -> Any:
    """All numbers of a written file; of a table mean and root mean square of its columns."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: kept_of(arrays[name].ravel().tolist())[:SIZE] for name in sorted(arrays.files)}
    if path.suffix == ".csv":
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        return {"rows": len(table), "mean": table.mean(axis=0).tolist(), "rms": np.sqrt((table**2).mean(axis=0)).tolist()}
    return numbers_in(_VERSION.sub("", _PRINCIPAL.sub(_whole_inertia, path.read_text("utf-8"))))[:SIZE]


def _whole_inertia(found: re.Match[str]) -> str:
    """The inertia in the axes of its body, since principal axes may point to either side."""
    (w, *xyz), diagonal = (np.array(group.split(), float) for group in found.groups())
    x, y, z = xyz
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    R = np.eye(3) + 2.0 * (w * K + K @ K)
    return " ".join(map(repr, (R @ np.diag(diagonal) @ R.T)[np.triu_indices(3)].tolist()))


def machine() -> dict[str, Any]:
    """What the last digits depend on: processor, kernels of the linear algebra and their threads, versions of what computes."""
    blas = sorted(
        {
            f"{one['internal_api']} {one['version']} {one.get('architecture', '')} x{one['num_threads']}"
            for one in threadpool_info()
            if one["user_api"] == "blas" and re.search(r"numpy|scipy", one["filepath"])
        }
    )
    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"processor": processor(), "blas": blas, "python": platform.python_version(), **packages}


def processor() -> str:
    """The model of the processor as its maker calls it."""
    told = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.*)$", told.read_text(), re.MULTILINE) if told.exists() else None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def record_path(name: str) -> Path:
    return RECORDS / f"{name}.json"


def read_record(name: str) -> dict[str, Any]:
    return json.loads(record_path(name).read_text("utf-8"))


def write_record(name: str, answer: Any) -> Path:
    """Keep an answer, one top key a line."""
    RECORDS.mkdir(exist_ok=True)
    lines = [f'"machine": {compact(machine())}']
    if isinstance(answer, dict):
        inner = ",\n".join(f" {json.dumps(key)}: {compact(value)}" for key, value in answer.items())
        lines.append(f'"answer": {{\n{inner}\n}}')
    else:
        lines.append('"answer": [\n' + ",\n".join(f" {compact(one)}" for one in answer) + "\n]")
    path = record_path(name)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return path


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def differences(
    kept: Any, found: Any, *, tight: bool, where: str = "", sigma: Any = None, largest: float = 0.0
) -> list[str]:
    """Every difference in one line each: keys that were added or removed, and values that moved.

    ``sigma`` holds standard deviations in the form of ``kept``, and ``largest`` is the largest number beside it in a list.
    """
    if isinstance(kept, dict) and isinstance(found, dict):
        return _of_tables(kept, found, tight, where, sigma if isinstance(sigma, dict) else {})
    if isinstance(kept, list) and isinstance(found, list):
        return _of_lists(kept, found, tight, where, sigma)
    if _is_number(kept) and _is_number(found):
        allowed = _allowed(kept, tight, sigma if _is_number(sigma) else None, largest, of_text=f".{IN_TEXT}[" in where)
        if abs(found - kept) <= allowed or kept == found or (math.isnan(kept) and math.isnan(found)):
            return []
        return [f"{where}: {kept!r} became {found!r} ({abs(found - kept):.1e} apart, {allowed:.1e} allowed)"]
    return [] if kept == found and type(kept) is type(found) else [f"{where}: {compact(kept)} became {compact(found)}"]


def _allowed(kept: float, tight: bool, sigma: float | None, largest: float, *, of_text: bool) -> float:
    if tight:
        return TIGHT * max(abs(kept), largest if sigma is None else sigma) + ROUNDING
    if sigma is not None:
        return OF_SIGMA * sigma + ROUNDING
    return max((OF_TEXT if of_text else OF_NUMBER) * abs(kept), OF_ERROR)


def _of_tables(kept: dict[str, Any], found: dict[str, Any], tight: bool, where: str, sigma: dict[str, Any]) -> list[str]:
    lines = [f"{where}.{key} was removed" for key in kept if key not in found]
    lines += [f"{where}.{key} was added" for key in found if key not in kept]
    for key in kept:
        if key in found:
            beside = sigma.get(key, sigma_beside(kept, key))
            lines += differences(kept[key], found[key], tight=tight, where=f"{where}.{key}", sigma=beside)
    return lines


def _of_lists(kept: list[Any], found: list[Any], tight: bool, where: str, sigma: Any) -> list[str]:
    if len(kept) != len(found):
        return [f"{where}: {len(kept)} entries became {len(found)}: {compact(kept)[:200]} became {compact(found)[:200]}"]
    largest = max((abs(one) for one in kept if _is_number(one) and math.isfinite(one)), default=0.0)
    sigmas = sigma if isinstance(sigma, list) and len(sigma) == len(kept) else [None] * len(kept)
    lines = []
    for k, (before, after, beside) in enumerate(zip(kept, found, sigmas, strict=True)):
        place = f"{where}[{before['name'] if isinstance(before, dict) and 'name' in before else k}]"
        lines += differences(before, after, tight=tight, where=place, sigma=beside, largest=largest)
    return lines


def sigma_beside(table: dict[str, Any], key: str) -> Any:
    """The standard deviation of a value, or those of several: beside it, as a share of it in percent, or from its interval."""
    if f"{key}_sigma" in table:
        return table[f"{key}_sigma"]
    if key in ("values", "phi"):
        return table.get("sigma")
    if key not in ("value", "lower", "upper"):
        return None
    if _is_number(table.get("sigma")):
        return table["sigma"]
    if _is_number(table.get("sigma_percent")) and _is_number(table.get("value")):
        return abs(table["sigma_percent"] * table["value"]) / 100.0
    if _is_number(table.get("lower")) and _is_number(table.get("upper")):
        return abs(table["upper"] - table["lower"]) / 4.0
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
