"""Sources with one operator or number changed: which there are, and a choice among them."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILERS = ROOT / "compilers"
MUTATED = sorted(
    room
    for room in ({*COMPILERS.iterdir()} - {COMPILERS / "targets"})
    | {*COMPILERS.glob("targets/*")}
    | {ROOT / "extensions" / name for name in ("infiniband", "host_paths", "lossless")}
    if room.suffix == ".py" or (room.is_dir() and any(room.rglob("*.py")))
)
"""The rooms of the compiler, of each of which as many mutants are chosen as it has, or a part."""
HARMLESS = Path(__file__).with_name("harmless.txt")
"""A line a mutant that nobody can see the effect of, and below it, indented, why."""
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPPOSITE = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax"}
OPPOSITE |= {other: word for word, other in OPPOSITE.items()}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class SourceMutant:
    """One change of a module.

    function: the qualified name of the function around it, "" outside of any; node: its place in
    the walk over the syntax tree; number: which change of that node; key: the same wherever the
    function moves; text: the changed statement.
    """

    file: str
    function: str
    line: int
    node: int
    number: int
    key: str
    text: str = ""

    def __str__(self) -> str:
        """`compilers/proof/x.py f: if a >= b:`, the same wherever the line moves."""
        return f"{self.file} {self.function}: {self.text}"

    def named(self, source: str) -> SourceMutant:
        """With its text."""
        nodes, around = _walked(source)
        place = nodes[self.node]
        changed = list(_changes(copy.deepcopy(place)))[self.number]
        if isinstance(changed, ast.Pass):
            return replace(self, text=f"without {' '.join(ast.unparse(place).splitlines())}")
        if isinstance(place, ast.stmt):
            return replace(self, text=ast.unparse(ast.fix_missing_locations(changed)))
        statement = place
        while not isinstance(statement, ast.stmt):
            statement = around[id(statement)]
        head = copy.copy(statement)
        for word in ("body", "orelse", "handlers", "finalbody", "cases"):
            if hasattr(head, word):
                setattr(head, word, [ast.Expr(ast.Constant(...))] if word == "body" else [])
        head = copy.deepcopy(head, {id(place): changed})
        text = " ".join(ast.unparse(head).splitlines()).removesuffix("...").strip()
        return replace(self, text=text)

    def tree(self, source: str) -> ast.Module:
        """The module with the change, lines as they were."""
        tree = ast.parse(source)
        place = next(node for i, node in enumerate(ast.walk(tree)) if i == self.node)
        changed = list(_changes(copy.deepcopy(place)))[self.number]
        ast.copy_location(changed, place)
        place.__dict__.update(changed.__dict__)
        place.__class__ = changed.__class__
        return ast.fix_missing_locations(tree)


@lru_cache(maxsize=8)
def _walked(source: str) -> tuple[list[ast.AST], dict[int, ast.AST]]:
    """The nodes of a module in the order of the walk, and by its id what is around each."""
    nodes = list(ast.walk(ast.parse(source)))
    return nodes, {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}


def mutants_of(file: str, source: str) -> Iterator[SourceMutant]:
    """Every mutant of a module, without its text."""
    tree = ast.parse(source)
    types = {id(part) for node in ast.walk(tree) for part in _types(node)}
    functions = dict(_functions(tree, ""))
    alike: Counter[str] = Counter()
    for place, node in enumerate(ast.walk(tree)):
        for number, _ in enumerate(_changes(node) if id(node) not in types else ()):
            key = f"{file} {functions[id(node)]} {ast.unparse(node)} {number}"
            alike[key] += 1
            line = getattr(node, "lineno", 0)
            yield SourceMutant(
                file, functions[id(node)], line, place, number, f"{key} {alike[key]}"
            )


def _types(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of the type that a node is declared to have: they do nothing when it runs."""
    for word in ("annotation", "returns"):
        if declared := getattr(node, word, None):
            yield from ast.walk(declared)


def _functions(node: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    """The function around every node below, as `__qualname__` has it."""
    for child in ast.iter_child_nodes(node):
        yield id(child), name
        inner = name
        if isinstance(child, SCOPES):
            outer = f"{name}.<locals>" if isinstance(node, SCOPES[:2]) else name
            inner = f"{outer}.{child.name}".lstrip(".")
        yield from _functions(child, inner)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may become: off by one, another comparison, a term dropped, the low byte.

    And a statement dropped, and for or, or for and, the least for the most, any for all, a value
    for its opposite.
    """
    if isinstance(node, ast.Compare) and (new := COMPARED.get(type(node.ops[0]))):
        yield ast.Compare(node.left, [new(), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.BitOr):
        yield copy.deepcopy(node.left)
        yield ast.BinOp(copy.copy(node), ast.BitAnd(), ast.Constant(0xFF))
    elif isinstance(node, ast.BoolOp):
        more = len(node.values) > 2
        yield ast.BoolOp(node.op, node.values[:-1]) if more else copy.deepcopy(node.values[0])
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
    yield from _stronger(node)


def _stronger(node: ast.AST) -> Iterator[ast.AST]:
    """Changes of what is meant, not of a bound: `and` and `or`, `min` and `max`, `~`, nothing."""
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
        yield ast.BinOp(node.left, other, node.right)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
        yield ast.AugAssign(node.target, other, node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in OPPOSITE:
        yield ast.Name(OPPOSITE[node.id], node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr in OPPOSITE:
        yield ast.Attribute(node.value, OPPOSITE[node.attr], node.ctx)
    if isinstance(node, ast.AugAssign | ast.Raise) or _writes(node) or _calls(node):
        yield ast.Pass()


def _writes(node: ast.AST) -> bool:
    """Whether a statement writes to a part of a value, so that without it the value is another."""
    return isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets
    )


def _calls(node: ast.AST) -> bool:
    """Whether a statement is a call or a yield, and no docstring."""
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)


@lru_cache
def all_mutants(only: str = "") -> list[list[SourceMutant]]:
    """Every mutant of the compiler, a list per room.

    only: those at places that begin so, `FOLDER/`, `FILE` or `FILE:LINE:`, with commas between.
    """
    return [
        [
            mutant
            for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
            for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_text())
            if f"{mutant.file}:{mutant.line}:".startswith(tuple(only.split(",")))
        ]
        for place in MUTATED
    ]


def chosen(seed: int, count: int, only: str = "") -> list[SourceMutant]:
    """So many mutants, as many of each folder as far as it has them, of each in turn.

    More of them are the same and others; a change of one function leaves those elsewhere chosen.
    """

    def drawn(mutant: SourceMutant) -> bytes:
        return sha256(f"{seed} {mutant.key}".encode()).digest()

    turns = zip_longest(*(sorted(found, key=drawn) for found in all_mutants(only)))
    result = islice(filter(None, chain.from_iterable(turns)), count)
    return [mutant.named((ROOT / mutant.file).read_text()) for mutant in result]


def harmless() -> dict[str, str]:
    """The mutants that were judged to change nothing that anybody can see, with the reason."""
    result: dict[str, str] = {}
    mutant = ""
    for line in HARMLESS.read_text().splitlines():
        if line.startswith("  "):
            result[mutant] = f"{result[mutant]} {line.strip()}".strip()
        elif line:
            mutant = line
            result[mutant] = ""
    return result
