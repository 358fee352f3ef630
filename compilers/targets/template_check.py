"""The user's own templates: which files they add, and every mistake that shows before rendering.

A template that no other needs and that the target has not is a file more for every switch. Wrong
are names that are a slip away from one of the target's, syntax, filters, templates that another
one needs, and variables that the target has not. What only a value shows (an attribute that an
object has not) is an error when it is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from jinja2 import Environment, TemplateNotFound, TemplateSyntaxError, meta, nodes

from compilers.spec.target_names import target_names
from inventory.problems import InputError, Problem, did_you_mean, few, nearest, shown

Variables = Mapping[str, frozenset[str]]
"""The variables of each file of a target."""
REFERENCES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
SEE = "see Options and variables of targets in the manual"


def own_templates(
    target: str, own: Path, environment: Environment, shipped: Environment, variables: Variables
) -> list[str]:
    """The files that the templates in the folder `own` add to those of a target.

    Args:
        target: whose templates.
        own: the folder; those of other targets in it are left alone.
        environment: of these templates, before the target's.
        shipped: of the target's only.
        variables: of each file of the target, those of a switch first; added files have these.

    Raises:
        InputError: every mistake, with file and line.
    """
    mine = _shipped(target, shipped)
    ours = set(mine)
    there = {path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file()}
    check = _Check(own, environment)
    check.read(there & ours)
    unread = {name for name in there - check.read_already if _may_add(name, target)}
    slips = {name: near for name in unread if (near := _slip(name, ours))}
    check.read(unread - slips.keys())
    added = sorted(unread - slips.keys() - check.needed)
    problems = [*check.problems, *_strays(target, own, there - check.read_already, ours, slips)]
    if not check.read_already and not problems:
        problems.append(
            Problem(
                file=str(own),
                required=f"templates of target {target}: {', '.join(sorted(ours))}",
                given="none of them",
            )
        )
    trees = (*mine.values(), *check.trees.values())
    everywhere = frozenset().union(*variables.values(), *map(_assigned, trees))
    known = {f"{target}/{file}.j2": words for file, words in variables.items()}
    known |= dict.fromkeys(added, next(iter(variables.values())))
    for name in check.trees:
        problems += check.unknown(name, known.get(name, everywhere))
    if problems:
        raise InputError(few(problems))
    return [_file(name) for name in added]


def _may_add(name: str, target: str) -> bool:
    """Whether a file of the user's, if no other needs it, is one more to be rendered."""
    folder, _, file = name.rpartition("/")
    return folder == target and file.endswith(".j2") and not file.startswith(".")


def _file(name: str) -> str:
    """What a template prints: `FILE` for `TARGET/FILE.j2`."""
    return name.rpartition("/")[2].removesuffix(".j2")


def _slip(name: str, ours: set[str]) -> str:
    """The template of the target whose name this one nearly has; "" where there is none.

    A slip has the same text before the first dot, or the same ending behind nearly that text, or is
    nearly the same as a whole.
    """
    file = _file(name)
    stem, _, ending = file.partition(".")
    for other in sorted(ours):
        its, _, last = _file(other).partition(".")
        if (
            stem == its
            or (ending == last and get_close_matches(stem, [its]))
            or get_close_matches(file, [_file(other)], cutoff=0.8)
        ):
            return other
    return ""


def _source(environment: Environment, name: str) -> str | None:
    """The text of a template; None where there is none."""
    assert environment.loader is not None, "ours have one"  # noqa: S101
    try:
        return environment.loader.get_source(environment, name)[0]
    except TemplateNotFound:
        return None


def _shipped(target: str, shipped: Environment) -> dict[str, nodes.Template]:
    """The templates of a target and those that they include, by name."""
    trees = {}
    wanted = {name for name in shipped.list_templates(["j2"]) if name.rpartition("/")[0] == target}
    while wanted:
        name = wanted.pop()
        trees[name] = shipped.parse(_source(shipped, name) or "")
        wanted |= {other for other in meta.find_referenced_templates(trees[name]) if other}
    return trees


class _Check:
    """The user's templates that a target uses, as trees by name, and what is wrong with them."""

    def __init__(self, own: Path, environment: Environment) -> None:
        self.trees: dict[str, nodes.Template] = {}
        self.read_already: set[str] = set()
        self.needed: set[str] = set()
        self.problems: list[Problem] = []
        self._own, self._environment = own, environment

    def read(self, names: set[str]) -> None:
        """Parse these templates, and those that they need."""
        for name in sorted(names - self.read_already):
            self.read_already.add(name)
            try:
                text = _source(self._environment, name) or ""
                self._environment.compile(text, name)
                self.trees[name] = self._environment.parse(text, name)
            except TemplateSyntaxError as error:
                given = error.message or type(error).__name__
                self._add(name, error.lineno, "a Jinja2 template", given)
            except (OSError, UnicodeDecodeError) as error:
                self._add(name, 0, "a text file in the folder", str(error))
            except RecursionError:
                self._add(name, 0, "a Jinja2 template", "one that is nested too deep")
            else:
                needed = set(self._needed(name))
                self.needed |= needed
                self.read(needed)

    def _needed(self, name: str) -> Iterator[str]:
        """The user's templates that one of them includes, imports or extends."""
        for node in self.trees[name].find_all(REFERENCES):
            wanted = getattr(node, "template", None)
            if not isinstance(wanted, nodes.Const) or not isinstance(wanted.value, str):
                continue
            if _source(self._environment, wanted.value) is None:
                if not getattr(node, "ignore_missing", False):
                    self._add(name, node.lineno, "a template that is there", shown(wanted.value))
            elif (self._own / wanted.value).is_file():
                yield wanted.value

    def unknown(self, name: str, known: frozenset[str]) -> Iterator[Problem]:
        """The variables of a template that are not known."""
        tree = self.trees[name]
        undeclared = meta.find_undeclared_variables(tree)
        for word in sorted(undeclared - known - set(self._environment.globals)):
            yield Problem(
                file=str(self._own / name),
                line=min(n.lineno for n in tree.find_all(nodes.Name) if n.name == word),
                required=f"one of the variables {', '.join(sorted(known))}",
                given=shown(word),
                todo=did_you_mean(word, known, SEE),
            )

    def _add(self, name: str, line: int, required: str, given: str) -> None:
        self.problems.append(
            Problem(file=str(self._own / name), line=line, required=required, given=given, todo=SEE)
        )


def _assigned(tree: nodes.Template) -> frozenset[str]:
    """Names that a template gives values, and that one which it includes may use."""
    return frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")


def _strays(
    target: str, own: Path, unused: set[str], ours: set[str], slips: Mapping[str, str]
) -> Iterator[Problem]:
    """Files that nothing would read, though they look like templates."""
    others = set(target_names()) - {target}
    for name in sorted(unused):
        folder, _, file = name.rpartition("/")
        near = slips.get(name) or nearest(name, ours)
        if file.startswith(".") or file.endswith("~") or folder.partition("/")[0] in others:
            continue
        if name.endswith(".j2") or (folder == target and near):
            yield Problem(
                file=str(own / name),
                required=f"a template of target {target}: {', '.join(sorted(ours))}",
                given=shown(name),
                todo=f"did you mean {near}?" if near else "rename it, or take it away",
            )
