"""How the source is built: size, concepts and dependencies of its modules, against what was recorded and against before.

    python benchmarks/house.py [--json] [--before REVISION] [--smoke] [--path] [--check] [--record]

Counted by reading the source with ``ast``, never by importing it. Complexity is counted twice: as ruff's C901 does (branches,
loops, handlers, cases, nested functions), and with boolean operators, conditional expressions and comprehensions as well, as
radon does. Imports under ``TYPE_CHECKING`` and inside functions count; an import of a package by its own modules
does not, since a module cannot be loaded without it. A private function has one call site when its name is read once in the
whole package. A module is tested by a file of its name in the folder of its name.

``--path`` runs ``identify`` on the Panda's log (Gaz and others 2019), or where that is absent on a simulated one, and counts
what it passes through: modules, functions, deepest stack, and how often the costly steps run. ``--check`` fails where a count
is worse than ``house.json`` beside this file says, ``--record`` writes that file. ``--smoke`` measures the present source alone.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import trace_path

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).resolve().with_suffix(".json")
BEFORE = "9d0a1cd"
LONG_FILE, LONGEST_FILE, LONG_FUNCTION, COMPLEX, WIDE = 400, 500, 60, 15, 15
Count = int | float
Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[Path, ast.Module]
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


def measure(source: Path, tests: Path) -> dict[str, Count]:
    """The counts of one source folder, which holds the package, and of its tests."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(source.rglob("*.py"))}
    named = {module_name(path, source): (tree, path.name == "__init__.py") for path, tree in trees.items()}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)]
    imports = dependencies(named)
    importers = Counter(target for found in imports.values() for target in found)
    lengths = [len(path.read_text("utf-8").splitlines()) for path in trees]
    return {
        "files": len(trees),
        "lines": sum(lengths),
        "statements": sum(is_statement(node) for tree in trees.values() for node in ast.walk(tree)),
        "dataclasses": sum(is_carrier(node) for tree in trees.values() for node in ast.walk(tree)),
        "one_importer": sum(importers[name] == 1 for name, (_, package) in named.items() if not package),
        "one_call_private": called_once(trees),
        "fan_out_over_15": sum(len(found) > WIDE for found in imports.values()),
        **public_counts({name: tree for name, (tree, _) in named.items()}),
        "tested_modules": tested(source, tests, trees),
        "files_over_500": sum(n > LONGEST_FILE for n in lengths),
        "long_files": sum(n > LONG_FILE for n in lengths),
        "longest_file": max(lengths),
        "long_functions": sum(node.end_lineno - node.lineno + 1 - lines_of_docstring(node) > LONG_FUNCTION
                              for node in functions if node.end_lineno is not None),
        "complex_functions": sum(complexity(node, more=True) > COMPLEX for node in functions),
        "complex_functions_c901": sum(complexity(node) > COMPLEX for node in functions),
        "cycles": len(cycles(imports)),
    }  # fmt: skip


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or the text below a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_statement(node: ast.AST) -> bool:
    """Whether a node is a statement that does something."""
    return isinstance(node, ast.stmt) and not is_text(node)


def is_carrier(node: ast.AST) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    if not isinstance(node, ast.ClassDef):
        return False
    decorators = (last_name(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list)
    return "dataclass" in decorators or "NamedTuple" in map(last_name, node.bases)


def last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``, empty for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def called_once(trees: Trees) -> int:
    """Private functions and methods whose name is read at one place only."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    reads = Counter(
        last_name(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    )
    private = (node.name for node in nodes if isinstance(node, Function) and is_private(node.name))
    return sum(reads[name] == 1 for name in private)


def is_private(name: str) -> bool:
    """Whether a name is that of a private function; ``__init__`` and the like belong to Python."""
    return name.startswith("_") and not name.startswith("__")


def tested(source: Path, tests: Path, trees: Trees) -> float:
    """Share of modules, packages left out, with a test file of their name where the tests mirror them."""
    modules = [path.relative_to(source) for path in trees if not path.stem.startswith("__")]
    found = sum((tests.joinpath(*path.parts[1:-1]) / f"test_{path.stem}.py").is_file() for path in modules)
    return round(found / max(len(modules), 1), 4)


def public_counts(modules: dict[str, ast.Module]) -> dict[str, Count]:
    """Names that the package and, in older versions, its families offer, those offered twice, and how many are documented."""
    top = next(name for name in modules if "." not in name)
    offered = {top: offered_names(modules[top])}
    for family in literal(modules[top], "FAMILIES") or ():
        offered[f"{top}.{family}"] = offered_names(modules[f"{top}.{family}"])
    everywhere = Counter(name for names in offered.values() for name in names)
    defined = (definition(modules, module, name) for module, names in offered.items() for name in names)
    functions = {id(node): node for node in defined if node is not None}.values()
    parts = [documented_parts(node) for node in functions]
    return {
        "public_names": len(everywhere),
        "offered_twice": sum(n > 1 for n in everywhere.values()),
        "documented_arguments": share(part[0] for part in parts),
        "documented_returns": share(part[1] for part in parts),
        "documented": share(all(part) for part in parts),
    }


def share(found: Iterator[bool]) -> float:
    """How many of all are true, as a fraction."""
    each = list(found)
    return round(sum(each) / max(len(each), 1), 4)


def offered_names(tree: ast.Module) -> dict[str, str]:
    """Public names of a module: of its ``__all__``, and of tables of names by the module that they are loaded from."""
    found = dict.fromkeys(literal(tree, "__all__") or (), "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) == "Offered":
            found |= dict.fromkeys(
                (name for word in node.keywords if word.arg == "own" for name in words(tree, word.value)), ""
            )
        if isinstance(node, ast.Dict) and all(isinstance(value, ast.Tuple) for value in node.values):
            for module, names in ast.literal_eval(node).items():
                found |= dict.fromkeys(names, module)
    return found


def literal(tree: ast.Module, name: str) -> list[str] | None:
    """The words of a list that a module names; keys where it is a table."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(last_name(one) == name for one in targets):
                return list(words(tree, node.value))
    return None


def words(tree: ast.Module, node: ast.AST) -> Iterator[str]:
    """Words of an expression: of a list with other lists unpacked into it, or the keys of a table."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Name):
        yield from literal(tree, node.id) or ()
    elif isinstance(node, ast.Dict):
        yield from (word for key in node.keys if key is not None for word in words(tree, key))
    elif not isinstance(node, ast.DictComp | ast.ListComp | ast.GeneratorExp | ast.SetComp):
        yield from (word for child in ast.iter_child_nodes(node) for word in words(tree, child))


def definition(modules: dict[str, ast.Module], module: str, name: str) -> Function | None:
    """The function of a public name, through the modules that pass it on; None for classes and values."""
    seen: set[str] = set()
    while module in modules and module not in seen:
        seen.add(module)
        tree = modules[module]
        for node in reversed(tree.body):  # the last one: those before it are overloads
            if isinstance(node, Function | ast.ClassDef) and node.name == name:
                return node if isinstance(node, Function) else None
        module, name = passed_on(tree, name)
    return None


def passed_on(tree: ast.Module, name: str) -> tuple[str, str]:
    """The module that a name is taken from, and its name there."""
    table = offered_names(tree)
    if table.get(name):
        return table[name], name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module, alias.name
    return "", name


def documented_parts(node: Function) -> tuple[bool, bool]:
    """Whether a function explains its arguments and what it returns, as far as there are any."""
    text = ast.get_docstring(node) or ""
    given = node.args
    has_arguments = bool([*given.posonlyargs, *given.args, *given.kwonlyargs] or given.vararg or given.kwarg)
    answers = not (isinstance(node.returns, ast.Constant) and node.returns.value is None)
    return ("Args:" in text or not has_arguments), ("Returns:" in text or "Yields:" in text or not answers)


def lines_of_docstring(node: Function) -> int:
    """A long function is one with much code, not one that is well explained."""
    first = node.body[0]
    if is_text(first):
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


def source_of(revision: str, folder: Path) -> None:
    """Source and tests of a revision, unpacked into a folder."""
    archive = subprocess.run(
        ["git", "archive", revision, "src", "tests"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


LABELS = {
    "files": "source files",
    "lines": "lines",
    "statements": "statements, docstrings not counted",
    "dataclasses": "dataclasses and named tuples",
    "one_importer": "modules with exactly one importer",
    "one_call_private": "private functions with one call site",
    "fan_out_over_15": f"modules that import more than {WIDE} modules of the package",
    "public_names": "public names",
    "offered_twice": "of them offered at two places",
    "documented": "share of public functions with documented arguments and return",
    "documented_arguments": "share with documented arguments",
    "documented_returns": "share with documented return",
    "tested_modules": "share of modules with a test file of the same name",
    "files_over_500": f"files over {LONGEST_FILE} lines",
    "long_files": f"files over {LONG_FILE} lines",
    "longest_file": "lines of the longest file",
    "long_functions": f"functions over {LONG_FUNCTION} lines, docstring not counted",
    "complex_functions": f"functions of complexity over {COMPLEX} (radon)",
    "complex_functions_c901": f"functions of complexity over {COMPLEX} (ruff C901)",
    "cycles": "import cycles, TYPE_CHECKING included",
    "path_modules": "modules passed by `identify`",
    "path_functions": "functions passed by `identify`",
    "path_depth": "deepest stack of `identify`",
    "path_process": "`process` in that run",
    "path_reduce_to_base": "`reduce_to_base` in that run",
    "path_row_passes": "passes over rows in that run",
    "path_inverse_dynamics": "`inverse_dynamics` in that run",
    "path_robots_built": "`Robot` built in that run",
}
GOALS: dict[str, Count] = {
    "files": 315,
    "lines": 69_000,
    "statements": 38_500,
    "dataclasses": 350,
    "one_importer": 40,
    "one_call_private": 350,
    "fan_out_over_15": 5,
    "public_names": 120,
    "documented": 1.0,
    "tested_modules": 0.9,
    "files_over_500": 0,
    "long_functions": 0,
    "path_modules": 120,
    "path_functions": 800,
    "path_depth": 20,
    "path_process": 8,
    "path_reduce_to_base": 2,
    "path_row_passes": 8,
    "path_inverse_dynamics": 8,
    "path_robots_built": 20,
}
MORE_IS_BETTER = ("documented", "documented_arguments", "documented_returns", "tested_modules")
FREE = ("long_files", "longest_file", "complex_functions_c901", "offered_twice")
"""Counts that are told and not held: others hold what they are about."""


def worse(recorded: dict[str, Count], found: dict[str, Count]) -> list[str]:
    """One sentence for each count that is worse than its recorded value; counts of the path are not held."""
    lines = []
    for key, before in recorded.items():
        if key not in found or key in FREE or key.startswith("path_"):
            continue
        fell, grew = found[key] < before, found[key] > before
        if fell if key in MORE_IS_BETTER else grew:
            lines.append(f"{LABELS[key]} ({key}) {'fell' if fell else 'grew'} from {before} to {found[key]}")
    return lines


def check(found: dict[str, Count]) -> None:
    """End with a sentence where the source has become larger than what was recorded."""
    if lines := worse(json.loads(RECORD.read_text("utf-8")), found):
        again = (
            "make it smaller, or record the new values with `python benchmarks/house.py --record` in a commit that says why"
        )
        raise SystemExit("\n".join(["the source has outgrown benchmarks/house.json:", *lines, again]))
    print("no count is worse than recorded in benchmarks/house.json")


def record(found: dict[str, Count]) -> None:
    """Keep these values; those of the path stay as they were unless it was traced."""
    kept = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    values = {key: found.get(key, kept.get(key)) for key in LABELS if key in found or key in kept}
    RECORD.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(f"recorded in {RECORD.relative_to(REPOSITORY)}")


def table(before: dict[str, Count], after: dict[str, Count], revision: str) -> Iterator[str]:
    """The counts as a table, with the goal of those that have one."""
    yield f"| | {revision} | now | goal |\n|---|---:|---:|---:|"
    for key, label in LABELS.items():
        if key in after:
            sign = ">=" if key in MORE_IS_BETTER else "<="
            goal = f"{sign} {GOALS[key]}" if key in GOALS else ""
            yield f"| {label} | {before.get(key, '')} | {after[key]} | {goal} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--before", default=BEFORE, help="revision to compare with")
    parser.add_argument("--smoke", action="store_true", help="the present source alone")
    parser.add_argument("--path", action="store_true", help="trace the main path too")
    parser.add_argument("--check", action="store_true", help="fail where a count is worse than recorded")
    parser.add_argument("--record", action="store_true", help="record the present counts")
    options = parser.parse_args()
    after = measure(REPOSITORY / "src", REPOSITORY / "tests")
    if options.path:
        after |= trace_path.path_counts()
    ends: dict[str, Callable[[dict[str, Count]], None]] = {"check": check, "record": record}
    for name, end in ends.items():
        if getattr(options, name):
            end(after)
            return
    before: dict[str, Count] = {}
    if not options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            source_of(options.before, Path(folder))
            before = measure(Path(folder) / "src", Path(folder) / "tests")
    if options.json:
        print(json.dumps({**after, "before": before or None}))
        return
    print("\n".join(table(before, after, options.before)))


if __name__ == "__main__":
    main()
