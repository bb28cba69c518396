"""Small faults put into a module, one at a time: an operator, a comparison, a number, a condition, a sign."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
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


def places_of(source: str) -> list[tuple[int, int, int, int]]:
    """Every fault that the operators know, in the order of lines: line, column, number of the node, number of the change."""
    tree = ast.parse(source)
    harmless = _harmless(tree)
    return sorted(
        (node.lineno, node.col_offset, place, k)
        for place, node in enumerate(ast.walk(tree))
        if id(node) not in harmless
        for k, _ in enumerate(_changes(node))
    )


def mutant_of(source: str, place: tuple[int, int, int, int]) -> Mutant:
    """The module with one of these faults."""
    tree = ast.parse(source)
    line, column, number, k = place
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == number)
    what, change = list(_changes(node))[k]
    before = ast.unparse(node)
    change(node)
    after = ast.unparse(node)
    return Mutant(line, column, f"{before} -> {after}" if len(before) + len(after) < 160 else what, ast.unparse(tree))


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], None]]]:
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


def _harmless(tree: ast.Module) -> set[int]:
    """Names of types, decorators and words of messages: faults in them change no result."""
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
    return {id(inner) for root in roots for inner in ast.walk(root)}


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _strict(node: ast.AST) -> bool:
    """An argument of ``zip`` that only states what is known."""
    return isinstance(node, ast.keyword) and node.arg == "strict"
