"""How the source is built: size, complexity and dependencies of its modules, before and after.

    python benchmarks/house.py [--json] [--before REVISION] [--smoke]

Counted by reading the source with ``ast``, never by importing it. Complexity is counted twice: as ruff's C901 does (branches,
loops, handlers, cases, nested functions), and with boolean operators, conditional expressions and comprehensions as well, as
radon does. Imports under ``TYPE_CHECKING`` and inside functions count; an import of a package by its own modules
does not, since a module cannot be loaded without it. ``--smoke`` measures the present source alone.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BEFORE = "67a28a2"
LONG_FILE, LONG_FUNCTION, COMPLEX, WIDE = 400, 60, 15, 15
Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.match_case,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)


def measure(source: Path) -> dict[str, int]:
    """The counts of one source folder, which holds the package."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(source.rglob("*.py"))}
    functions = [(path, node) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, Function)]
    imports = dependencies({module_name(path, source): (tree, path.name == "__init__.py") for path, tree in trees.items()})
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in trees}
    return {
        "files": len(trees),
        "lines": sum(lengths.values()),
        "long_files": sum(n > LONG_FILE for n in lengths.values()),
        "longest_file": max(lengths.values()),
        "long_functions": sum(node.end_lineno - node.lineno + 1 - lines_of_docstring(node) > LONG_FUNCTION
                              for _, node in functions if node.end_lineno is not None),
        "complex_functions": sum(complexity(node, more=True) > COMPLEX for _, node in functions),
        "complex_functions_c901": sum(complexity(node) > COMPLEX for _, node in functions),
        "wide_modules": sum(len(found) > WIDE for found in imports.values()),
        "cycles": len(cycles(imports)),
    }  # fmt: skip


def lines_of_docstring(node: Function) -> int:
    """A long function is one with much code, not one that is well explained."""
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def complexity(node: ast.AST, *, more: bool = False) -> int:
    """McCabe's number of a function."""
    found = 1
    for child in ast.walk(node):
        if child is node:
            continue
        if isinstance(child, _BRANCHES) or (more and isinstance(child, ast.IfExp)):
            found += 1
        elif isinstance(child, ast.Try):
            found += bool(child.orelse)
        elif more and isinstance(child, ast.BoolOp):
            found += len(child.values) - 1
        elif more and isinstance(child, ast.comprehension):
            found += 1 + len(child.ifs)
    return found


def module_name(path: Path, source: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def dependencies(modules: dict[str, tuple[ast.Module, bool]]) -> dict[str, set[str]]:
    """Modules of the package that each module imports, without packages that hold it."""
    found: dict[str, set[str]] = {}
    for name, (tree, _) in modules.items():
        found[name] = {
            target
            for imported in imported_names(tree)
            if (target := known(imported, modules)) and target != name and not name.startswith(f"{target}.")
        }
    return found


def imported_names(tree: ast.Module) -> Iterator[str]:
    """What the imports of a module name, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def known(imported: str, modules: dict[str, tuple[ast.Module, bool]]) -> str:
    """The module that an import names: itself, or the one that holds the name."""
    if imported in modules:
        return imported
    holder = imported.rpartition(".")[0]
    return holder if holder in modules else ""


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules of which each reaches every other one (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in imports:
        if name not in index:
            visit(name)
    return groups


def source_of(revision: str, folder: Path) -> Path:
    """The source of a revision, unpacked into a folder."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


LABELS = {
    "files": "source files",
    "lines": "lines",
    "long_files": f"files over {LONG_FILE} lines",
    "longest_file": "lines of the longest file",
    "long_functions": f"functions over {LONG_FUNCTION} lines, docstring not counted",
    "complex_functions": f"functions of complexity over {COMPLEX} (radon)",
    "complex_functions_c901": f"functions of complexity over {COMPLEX} (ruff C901)",
    "wide_modules": f"modules that import more than {WIDE} modules of the package",
    "cycles": "import cycles, TYPE_CHECKING included",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--before", default=BEFORE, help="revision to compare with")
    parser.add_argument("--smoke", action="store_true", help="the present source alone")
    options = parser.parse_args()
    after = measure(REPOSITORY / "src")
    before: dict[str, int] = {}
    if not options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            before = measure(source_of(options.before, Path(folder)))
    if options.json:
        print(json.dumps({"before": before or None, "after": after}))
        return
    print(f"| | {options.before} | now |\n|---|---:|---:|")
    for key, label in LABELS.items():
        print(f"| {label} | {before.get(key, '')} | {after[key]} |")


if __name__ == "__main__":
    main()
