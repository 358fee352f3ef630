"""Templates of the user's own: every mistake that shows before anything is rendered.

Files that are no template of the target, syntax, filters, templates that another one needs, and
variables that the target has not. What only a value shows (an attribute that an object has not)
is an error when it is rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError, meta, nodes

from compilers.spec.target_names import TARGETS
from inventory.problems import InputError, Problem, few, nearest, shown
from templates import TEMPLATES

Variables = Mapping[str, frozenset[str]]
"""The variables of each file of a target."""
REFERENCES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
SEE = "see the page of the target in docs/"


def known(files: Iterable[str], *words: str) -> Variables:
    """The same variables, words of these texts, for each of some files."""
    return dict.fromkeys(files, frozenset(" ".join(words).split()))


def check_templates(target: str, own: Path, environment: Environment, variables: Variables) -> None:
    """Pass when the templates in the folder `own` are some that `render` can use for a target.

    Args:
        target: whose templates.
        own: the folder; those of other targets in it are left alone.
        environment: of these templates, before ours.
        variables: of each file of the target.

    Raises:
        InputError: every mistake, with file and line.
    """
    mine = _ours(target, environment)
    ours = set(mine)
    there = {path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file()}
    check = _Check(own, environment)
    check.read({name for name in there if name in ours})
    problems = check.problems + list(_strays(target, own, there - check.read_already, ours))
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
    for name in check.trees:
        file = name.removeprefix(f"{target}/").removesuffix(".j2")
        problems += check.unknown(name, variables.get(file, everywhere))
    if problems:
        raise InputError(few(problems))


def _ours(target: str, environment: Environment) -> dict[str, nodes.Template]:
    """The templates of a target and those that they include, by name."""
    trees = {}
    wanted = {path.relative_to(TEMPLATES).as_posix() for path in (TEMPLATES / target).glob("*.j2")}
    while wanted:
        name = wanted.pop()
        trees[name] = environment.parse((TEMPLATES / name).read_text())
        wanted |= {other for other in meta.find_referenced_templates(trees[name]) if other}
    return trees


class _Check:
    """The user's templates that a target uses, as trees by name, and what is wrong with them."""

    def __init__(self, own: Path, environment: Environment) -> None:
        self.trees: dict[str, nodes.Template] = {}
        self.read_already: set[str] = set()
        self.problems: list[Problem] = []
        self._own, self._environment = own, environment

    def read(self, names: set[str]) -> None:
        """Parse these templates, and those that they need."""
        for name in sorted(names - self.read_already):
            self.read_already.add(name)
            try:
                text = (self._own / name).read_text()
                self._environment.compile(text, name)
                self.trees[name] = self._environment.parse(text, name)
            except TemplateSyntaxError as error:
                given = error.message or type(error).__name__
                self._add(name, error.lineno, "a Jinja2 template", given)
            except (OSError, UnicodeDecodeError) as error:
                self._add(name, 0, "a text file that can be read", str(error))
            else:
                self.read(set(self._needed(name)))

    def _needed(self, name: str) -> Iterator[str]:
        """The user's templates that one of them includes, imports or extends."""
        for node in self.trees[name].find_all(REFERENCES):
            wanted = getattr(node, "template", None)
            if not isinstance(wanted, nodes.Const) or not isinstance(wanted.value, str):
                continue
            if (self._own / wanted.value).is_file():
                yield wanted.value
            elif not (TEMPLATES / wanted.value).is_file() and not getattr(
                node, "ignore_missing", 0
            ):
                self._add(name, node.lineno, "a template that is there", shown(wanted.value))

    def unknown(self, name: str, known: frozenset[str]) -> Iterator[Problem]:
        """The variables of a template that are not known."""
        tree = self.trees[name]
        found = meta.find_undeclared_variables(tree) - known - set(self._environment.globals)
        for word in sorted(found):
            near = nearest(word, known)
            yield Problem(
                file=str(self._own / name),
                line=min(n.lineno for n in tree.find_all(nodes.Name) if n.name == word),
                required=f"one of the variables {', '.join(sorted(known))}",
                given=shown(word),
                todo=f"did you mean {near}?" if near else SEE,
            )

    def _add(self, name: str, line: int, required: str, given: str) -> None:
        self.problems.append(
            Problem(file=str(self._own / name), line=line, required=required, given=given, todo=SEE)
        )


def _assigned(tree: nodes.Template) -> frozenset[str]:
    """Names that a template gives values, and that one which it includes may use."""
    return frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")


def _strays(target: str, own: Path, unused: set[str], ours: set[str]) -> Iterator[Problem]:
    """Files that nobody would read, though they look like templates."""
    for name in sorted(unused):
        folder, _, file = name.rpartition("/")
        near = nearest(name, ours)
        if file.startswith(".") or file.endswith("~"):
            continue
        if folder.partition("/")[0] in set(TARGETS) - {target}:
            continue
        if name.endswith(".j2") or (folder == target and near):
            yield Problem(
                file=str(own / name),
                required=f"a template of target {target}: {', '.join(sorted(ours))}",
                given=shown(name),
                todo=f"did you mean {near}?" if near else "rename it, or take it away",
            )
