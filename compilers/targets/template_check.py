"""Checks the templates of a user before they are rendered, and says which files they add.

A template of the user replaces the target's template of the same name. A template of another name,
which no template includes, adds a file to every switch. A `Renderer` calls `check_templates` before
it renders anything. The check finds these mistakes: a *slip*, a name that is nearly that of a
template of the target; wrong syntax; unknown filters and variables; and templates that do not
exist. Only what depends on a value, such as an unknown attribute, shows up later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, TemplateNotFound, TemplateSyntaxError, meta, nodes

from compilers.spec.target_names import target_names
from inventory.problems import InputError, Problem, did_you_mean, few, nearest, shown

Variables = Mapping[str, frozenset[str]]
"""The names of the variables of each file of a target."""
REFERENCES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
"""The statements by which a template needs another."""
CLOSE_MATCH = 0.8
"""How similar whole names of files have to be for a slip, from 0 to 1 (`difflib`)."""
SEE_MANUAL = "see Options and variables of targets in the manual"
"""What to do about a mistake in a template."""


def check_templates(
    target: str,
    users_folder: Path,
    environment: Environment,
    shipped: Environment,
    variables: Variables,
) -> list[str]:
    """Check the templates of a user, and return the names of the files that they add.

    Args:
        target: the name of the target.
        users_folder: the user's folder; templates of other targets in it are left alone.
        environment: finds the user's templates before the target's.
        shipped: finds the target's templates only.
        variables: the variables of each file of the target, the files of a switch first; added
            files have the variables of the first file.

    Raises:
        InputError: all mistakes, with file and line.
    """
    target_trees = _shipped_trees(target, shipped)
    template_names = set(target_trees)
    users_files = _files_below(users_folder)
    users_templates = _UsersTemplates(users_folder, environment)
    # First come the templates that replace those of the target, and all templates that these need.
    # The other templates in the folder of the target add files, unless their names are slips.
    users_templates.read(users_files & template_names)
    others = {name for name in users_files - users_templates.names_read if _may_add(name, target)}
    slips = {name: meant for name in others if (meant := _meant_name(name, template_names))}
    additions = others - slips.keys()
    users_templates.read(additions)
    added_names = sorted(additions - users_templates.names_needed)  # not those that others include
    unused = users_files - users_templates.names_read
    problems = [
        *users_templates.problems,
        *_stray_problems(target, users_folder, unused, template_names, slips),
    ]
    if not users_templates.names_read and not problems:
        problems.append(
            Problem(
                file=str(users_folder),
                required=f"templates of target {target}: {', '.join(sorted(template_names))}",
                given="none of them",
            )
        )
    trees = (*target_trees.values(), *users_templates.trees.values())
    # An included template may be used for any file, and get the variables that others assign.
    all_variables = frozenset().union(*variables.values(), *map(_assigned_names, trees))
    variables_of = {f"{target}/{file}.j2": names for file, names in variables.items()}
    variables_of |= dict.fromkeys(added_names, next(iter(variables.values())))
    for name in users_templates.trees:
        problems += users_templates.unknown_variables(name, variables_of.get(name, all_variables))
    if problems:
        raise InputError(few(problems))
    return [_file_name(name) for name in added_names]


def _files_below(folder: Path) -> set[str]:
    """The paths of all files in a folder and the folders below, as names of templates."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in paths}


def _may_add(name: str, target: str) -> bool:
    """Whether a template of the user adds a file, unless another template includes it."""
    folder, _, file = name.rpartition("/")
    return folder == target and file.endswith(".j2") and not file.startswith(".")


def _file_name(name: str) -> str:
    """The file that a template prints: `FILE` for `TARGET/FILE.j2`."""
    return name.rpartition("/")[2].removesuffix(".j2")


def _meant_name(name: str, template_names: set[str]) -> str:
    """The template of the target that the user probably meant by a name; "" for none.

    The names are the same before the first dot, or nearly so with the same ending, or nearly the
    same as a whole.
    """
    file = _file_name(name)
    stem, _, ending = file.partition(".")
    for template_name in sorted(template_names):
        target_file = _file_name(template_name)
        target_stem, _, target_ending = target_file.partition(".")
        if (
            stem == target_stem
            or (ending == target_ending and get_close_matches(stem, [target_stem]))
            or get_close_matches(file, [target_file], cutoff=CLOSE_MATCH)
        ):
            return template_name
    return ""


def _source(environment: Environment, name: str) -> str | None:
    """The text of a template; None where it does not exist."""
    assert environment.loader is not None, "environments of polarfab have one"  # noqa: S101
    try:
        return environment.loader.get_source(environment, name)[0]
    except TemplateNotFound:
        return None


def _shipped_trees(target: str, shipped: Environment) -> dict[str, nodes.Template]:
    """The parsed templates of a target, and those that they include, by name."""
    trees = {}
    names = {name for name in shipped.list_templates(["j2"]) if name.rpartition("/")[0] == target}
    while names:
        name = names.pop()
        trees[name] = _parsed(shipped, _source(shipped, name) or "")
        names |= {needed for needed in meta.find_referenced_templates(trees[name]) if needed}
    return trees


@lru_cache(1 << 8)
def _parsed(shipped: Environment, text: str) -> nodes.Template:
    """A parsed template of a target, which nothing changes."""
    return shipped.parse(text)


class _UsersTemplates:
    """The user's templates that a target uses, and what is wrong with them."""

    def __init__(self, users_folder: Path, environment: Environment) -> None:
        self.trees: dict[str, nodes.Template] = {}
        """The templates that could be parsed, by name."""
        self.names_read: set[str] = set()
        """The names of all templates that were read."""
        self.names_needed: set[str] = set()
        """The names of templates that another includes, imports or extends."""
        self.problems: list[Problem] = []
        """The mistakes in templates."""
        self._users_folder, self._environment = users_folder, environment

    def read(self, names: set[str]) -> None:
        """Parse templates, and those that they need."""
        for name in sorted(names - self.names_read):
            self.names_read.add(name)
            try:
                text = _source(self._environment, name) or ""
                self._environment.compile(text, name)
                self.trees[name] = self._environment.parse(text, name)
            except TemplateSyntaxError as error:
                given = error.message or type(error).__name__
                self._add_problem(name, error.lineno, "a Jinja2 template", given)
            except (OSError, UnicodeDecodeError) as error:
                self._add_problem(name, 0, "a text file in the folder", str(error))
            except RecursionError:
                self._add_problem(name, 0, "a Jinja2 template", "one that is nested too deep")
            else:
                needed = set(self._needed(name))
                self.names_needed |= needed
                self.read(needed)

    def _needed(self, name: str) -> Iterator[str]:
        """The user's templates that a template includes, imports or extends."""
        for node in self.trees[name].find_all(REFERENCES):
            reference = getattr(node, "template", None)
            if not isinstance(reference, nodes.Const) or not isinstance(reference.value, str):
                continue  # a name that depends on variables
            needed = reference.value
            if _source(self._environment, needed) is None:
                if not getattr(node, "ignore_missing", False):
                    self._add_problem(name, node.lineno, "a template that is there", shown(needed))
            elif (self._users_folder / needed).is_file():
                yield needed

    def unknown_variables(self, name: str, variables: frozenset[str]) -> Iterator[Problem]:
        """The problems of variables that a template uses and does not get.

        Args:
            name: the name of the template.
            variables: the names of the variables that it gets.
        """
        tree = self.trees[name]
        undeclared = meta.find_undeclared_variables(tree)
        for variable in sorted(undeclared - variables - set(self._environment.globals)):
            yield Problem(
                file=str(self._users_folder / name),
                line=min(
                    node.lineno for node in tree.find_all(nodes.Name) if node.name == variable
                ),
                required=f"one of the variables {', '.join(sorted(variables))}",
                given=shown(variable),
                todo=did_you_mean(variable, variables, SEE_MANUAL),
            )

    def _add_problem(self, name: str, line: int, required: str, given: str) -> None:
        """Add a mistake at a line of a template."""
        file = str(self._users_folder / name)
        self.problems.append(
            Problem(file=file, line=line, required=required, given=given, todo=SEE_MANUAL)
        )


def _assigned_names(tree: nodes.Template) -> frozenset[str]:
    """The names to which a template assigns values, which included templates may use."""
    return frozenset(node.name for node in tree.find_all(nodes.Name) if node.ctx != "load")


def _stray_problems(
    target: str,
    users_folder: Path,
    unused: set[str],
    templates: set[str],
    slips: Mapping[str, str],
) -> Iterator[Problem]:
    """The problems of the user's files that look like templates, and that nothing would read.

    Args:
        target: the name of the target.
        users_folder: the user's folder.
        unused: its files that were not read.
        templates: the names of the target's templates.
        slips: for each file with nearly the name of a template, the name of the template.
    """
    other_targets = set(target_names()) - {target}
    for name in sorted(unused):
        folder, _, file = name.rpartition("/")
        meant = slips.get(name) or nearest(name, templates)
        is_of_other_target = folder.partition("/")[0] in other_targets
        if file.startswith(".") or file.endswith("~") or is_of_other_target:
            continue
        if name.endswith(".j2") or (folder == target and meant):
            yield Problem(
                file=str(users_folder / name),
                required=f"a template of target {target}: {', '.join(sorted(templates))}",
                given=shown(name),
                todo=f"did you mean {meant}?" if meant else "rename it, or take it away",
            )
