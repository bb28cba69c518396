"""Small faults put into a module, one at a time: an operator, a comparison, a number, a condition, a sign."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_COMPARISON = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_REVERSED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


@dataclass(frozen=True)
class Mutant:
    """A module with one fault."""

    line: int
    column: int
    what: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """Every fault that the operators put into a module, in the order of its lines."""
    tree = ast.parse(source)
    found = []
    for place, node in enumerate(ast.walk(tree)):
        if _skipped(tree, node):
            continue
        for what, change in _changes(node):
            mutated = copy.deepcopy(tree)
            target = next(other for k, other in enumerate(ast.walk(mutated)) if k == place)
            before = ast.unparse(target)
            change(target)
            after = ast.unparse(target)
            text = f"{before} -> {after}" if len(before) + len(after) < 160 else what
            found.append(Mutant(node.lineno, node.col_offset, text, ast.unparse(mutated)))
    return sorted(found, key=lambda one: (one.line, one.column, one.what))


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Names and functions that change a node of the same kind in place."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield "operator", lambda other: setattr(other, "op", _ARITHMETIC[type(other.op)]())
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if type(node.ops[0]) in _COMPARISON:
            yield "comparison", lambda other: setattr(other, "ops", [_COMPARISON[type(other.ops[0])]()])
        if type(node.ops[0]) in _REVERSED:
            yield "comparison turned round", lambda other: setattr(other, "ops", [_REVERSED[type(other.ops[0])]()])
    if isinstance(node, ast.BoolOp):
        yield "and/or", lambda other: setattr(other, "op", ast.Or() if isinstance(other.op, ast.And) else ast.And())
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", lambda other: setattr(other, "value", not other.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", lambda other: setattr(other, "value", other.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        yield "number", lambda other: setattr(other, "value", 2.0 * other.value if other.value else 1.0)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "sign", lambda other: setattr(other, "op", ast.UAdd())
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
        yield "condition", lambda other: setattr(other, "test", ast.UnaryOp(ast.Not(), other.test))


def _skipped(tree: ast.Module, node: ast.AST) -> bool:
    """Names of types, decorators and words of messages: faults in them change no result."""
    return id(node) in _harmless(tree)


def _harmless(tree: ast.Module) -> set[int]:
    known: set[int] | None = getattr(tree, "_harmless", None)
    if known is not None:
        return known
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            roots += [*node.decorator_list, *filter(None, [node.returns])]
        elif isinstance(node, ast.ClassDef):
            roots += node.decorator_list
        elif isinstance(node, ast.arg | ast.AnnAssign):
            roots += filter(None, [node.annotation])
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom) or _for_types(node) or _strict(node):
            roots.append(node)
    known = {id(inner) for root in roots for inner in ast.walk(root)}
    tree._harmless = known  # type: ignore[attr-defined]
    return known


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _strict(node: ast.AST) -> bool:
    """An argument of ``zip`` that only states what is known."""
    return isinstance(node, ast.keyword) and node.arg == "strict"
