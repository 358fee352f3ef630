"""Checks the templates that a user puts before those of a target, and says which files they add.

A template of the user replaces the target's of the same name. One of another name, which no
template includes, adds a file to every switch. Mistakes are found before anything is rendered: a
name that is nearly one of the target's, wrong syntax, unknown filters and variables, and templates
that do not exist. Only what depends on a value, such as an unknown attribute, is found later.
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
    """The files that the templates of a user add to those of a target.

    Args:
        target: its name.
        own: the user's folder; templates of other targets in it are left alone.
        environment: finds the user's templates before the target's.
        shipped: finds the target's only.
        variables: of each file of the target, those of a switch first; added files have these.

    Raises:
        InputError: all mistakes, with file and line.
    """
    trees_of_target = _shipped(target, shipped)
    of_target = set(trees_of_target)
    files = {path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file()}
    check = _Check(own, environment)
    check.read(files & of_target)
    unread = {name for name in files - check.read_already if _may_add(name, target)}
    slips = {name: near for name in unread if (near := _nearly(name, of_target))}
    check.read(unread - slips.keys())
    added = sorted(unread - slips.keys() - check.needed)
    unused = files - check.read_already
    problems = [*check.problems, *_strays(target, own, unused, of_target, slips)]
    if not check.read_already and not problems:
        problems.append(
            Problem(
                file=str(own),
                required=f"templates of target {target}: {', '.join(sorted(of_target))}",
                given="none of them",
            )
        )
    trees = (*trees_of_target.values(), *check.trees.values())
    # An included template is not known to have the variables of one file only.
    all_variables = frozenset().union(*variables.values(), *map(_assigned, trees))
    of_template = {f"{target}/{file}.j2": words for file, words in variables.items()}
    of_template |= dict.fromkeys(added, next(iter(variables.values())))
    for name in check.trees:
        problems += check.unknown(name, of_template.get(name, all_variables))
    if problems:
        raise InputError(few(problems))
    return [_file(name) for name in added]


def _may_add(name: str, target: str) -> bool:
    """Whether a template of the user adds a file, unless another template includes it."""
    folder, _, file = name.rpartition("/")
    return folder == target and file.endswith(".j2") and not file.startswith(".")


def _file(name: str) -> str:
    """The file that a template prints: `FILE` for `TARGET/FILE.j2`."""
    return name.rpartition("/")[2].removesuffix(".j2")


def _nearly(name: str, of_target: set[str]) -> str:
    """The template of the target that the user probably meant by a name; "" for none.

    The names are the same before the first dot, or nearly so with the same ending, or nearly the
    same as a whole.
    """
    file = _file(name)
    stem, _, ending = file.partition(".")
    for other in sorted(of_target):
        other_stem, _, other_ending = _file(other).partition(".")
        if (
            stem == other_stem
            or (ending == other_ending and get_close_matches(stem, [other_stem]))
            or get_close_matches(file, [_file(other)], cutoff=0.8)
        ):
            return other
    return ""


def _source(environment: Environment, name: str) -> str | None:
    """The text of a template; None where it does not exist."""
    assert environment.loader is not None, "ours have one"  # noqa: S101
    try:
        return environment.loader.get_source(environment, name)[0]
    except TemplateNotFound:
        return None


def _shipped(target: str, shipped: Environment) -> dict[str, nodes.Template]:
    """The templates of a target, and those that they include, by name."""
    trees = {}
    names = {name for name in shipped.list_templates(["j2"]) if name.rpartition("/")[0] == target}
    while names:
        name = names.pop()
        trees[name] = shipped.parse(_source(shipped, name) or "")
        names |= {other for other in meta.find_referenced_templates(trees[name]) if other}
    return trees


class _Check:
    """The user's templates that a target uses, and what is wrong with them."""

    def __init__(self, own: Path, environment: Environment) -> None:
        self.trees: dict[str, nodes.Template] = {}
        """The templates that could be parsed, by name."""
        self.read_already: set[str] = set()
        """The names of all that were read."""
        self.needed: set[str] = set()
        """The names of those that another includes, imports or extends."""
        self.problems: list[Problem] = []
        self._own, self._environment = own, environment

    def read(self, names: set[str]) -> None:
        """Parse templates, and those that they need."""
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
        """The user's templates that a template includes, imports or extends."""
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
        """The variables of a template that it does not get.

        Args:
            name: of the template.
            known: the variables that it gets.
        """
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
    """The names to which a template assigns values, which included templates may use."""
    return frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")


def _strays(
    target: str, own: Path, unused: set[str], of_target: set[str], slips: Mapping[str, str]
) -> Iterator[Problem]:
    """Files that look like templates, and that nothing would read.

    Args:
        target: its name.
        own: the user's folder.
        unused: its files that were not read.
        of_target: the templates of the target.
        slips: files that nearly have the name of one.
    """
    others = set(target_names()) - {target}
    for name in sorted(unused):
        folder, _, file = name.rpartition("/")
        near = slips.get(name) or nearest(name, of_target)
        if file.startswith(".") or file.endswith("~") or folder.partition("/")[0] in others:
            continue
        if name.endswith(".j2") or (folder == target and near):
            yield Problem(
                file=str(own / name),
                required=f"a template of target {target}: {', '.join(sorted(of_target))}",
                given=shown(name),
                todo=f"did you mean {near}?" if near else "rename it, or take it away",
            )
