"""Load fabric.yaml and the inventory it names, and check them against each other.

The texts of errors: a wrong type, key or value in `inventory.document_errors`, the rules of a field
in `fabric_spec`, between fields in `cross_checks`, of a family in `compilers.topology.families`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compilers.spec.cross_checks import check_nodes, check_spec
from compilers.spec.fabric_spec import FabricSpec
from compilers.spec.installed import Installed
from compilers.spec.policy import WORST_CASE
from compilers.topology.families import check_topology
from inventory.document_errors import checked
from inventory.problems import Finding, InputError, KeyPath, Problem, Refused, did_you_mean, few
from inventory.yamlfile import (
    STDIN,
    Document,
    TextFile,
    Unreadable,
    read,
    read_or_take,
    read_text,
)

if TYPE_CHECKING:  # most fabrics name no inventory
    from inventory.inventory_file import Examined
    from inventory.model import Inventory

HARDWARE_KEYS = {"node_types", "nodes", "generate", "racks"}
"""Keys by which an inventory.yaml is known where a fabric.yaml belongs."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFabric:
    """A spec and inventory that fit each other, and the documents that they were read from."""

    spec: FabricSpec
    """fabric.yaml as a value."""
    inventory: Inventory | None
    """The hardware; None where the spec names none."""
    fabric_document: Document
    """fabric.yaml as it was read."""
    inventory_document: Document | None
    """The inventory as it was read; None where the spec names none."""
    plane: int = 0
    """From 1 where this is one of several planes (`compilers.planes`), 0 elsewhere."""
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Of a plane: where the entries of its inventory's lists are in the lists of the file."""
    demand: TextFile | None = None
    """The file that `routing.demand` names; None where it names none."""
    installed: tuple[Installed, ...] = ()
    """What is cabled already and stays, a value a plane."""

    @property
    def inputs(self) -> dict[str, str]:
        """The SHA-256 digest of each file that was read, by its role."""
        hardware, demand = self.inventory_document, self.demand
        graph = read_text(name) if (name := self.spec.topology.file) else None
        files = {
            "fabric": self.fabric_document,
            "inventory": hardware,
            "demand": demand,
            "graph": graph,
        }
        return {role: file.sha256 for role, file in files.items() if file}

    @contextmanager
    def stage(self) -> Iterator[list[Finding]]:
        """Collect the mistakes that a stage finds, and raise all of them as one error.

        The block adds what its checks find to the list. Where an `InputError` ends the block, its
        problems come after those in the list. Each gets its file and line.

            with loaded.stage() as findings:
                findings += beyond_targets(loaded.spec)
                placed = place_fabric(loaded)

        Raises:
            InputError: the stage found a mistake.
        """
        findings, problems = list[Finding](), list[Problem]()
        try:
            yield findings
        except Refused as refused:
            findings += refused.findings
        except InputError as error:
            problems = [self._located(problem) for problem in error.problems]
        problems = [*map(self._problem, findings), *problems]
        if problems:
            raise InputError(_in_order(few(problems), self.fabric_document)) from None

    def _located(self, problem: Problem) -> Problem:
        """A problem that says a key of fabric.yaml and no file, with both."""
        path = tuple(problem.key.split("."))
        if problem.file or path[0] not in FabricSpec.model_fields:
            return problem
        return self._problem(Finding(path, problem.required, problem.given, problem.todo))

    def _problem(self, finding: Finding) -> Problem:
        """In the document that the first key tells; of a plane, with the places in the file."""
        if self.plane:
            path, also = self._in_file(finding.path), self._in_file(finding.also)
            given = f"{finding.given} (plane {self.plane})"
            finding = replace(finding, path=path, also=also, given=given)
        from inventory.model import Inventory

        hardware = self.inventory_document
        of_hardware = hardware and finding.path[0] in Inventory.model_fields
        return (hardware if hardware and of_hardware else self.fabric_document).placed(finding)

    def _in_file(self, path: KeyPath) -> KeyPath:
        match path:
            case (str(word), int(i), *rest) if word in self.places:
                return (word, self.places[word][i], *rest)
        return path

    def with_routing(self, **words: str) -> LoadedFabric:
        """The same fabric with other words in `routing`; the inputs stay those that were read.

        Raises:
            InputError: these words are wrong, said of keys without file and line.
        """
        data = self.fabric_document.data
        data = {**data, "routing": {**data.get("routing", {}), **words}}
        spec, findings = _spec(data)
        if spec is None or findings:
            raise Refused(findings)
        document = Document("", self.fabric_document.sha256, data)
        return replace(self, spec=spec, fabric_document=document)


def load_fabric(
    source: str | Path | Mapping[str, Any],
    document: Document | None = None,
    inventory: str | Path | Mapping[str, Any] | None = None,
) -> LoadedFabric:
    """The fabric of a YAML file (`-`: standard input) or of a mapping, with its inventory.

    The inventory's file name is relative to the fabric's; in a mapping, `inventory` may be the
    inventory itself. `document` is the file's content, or the part of it that describes the
    fabric, where it has been read already. `inventory` is taken in place of the one named.

    Raises:
        InputError: every mistake in either, and where they do not fit.
    """
    problems: list[Problem] = []
    document = document or read_or_take(source)
    if "topology" not in document.data and HARDWARE_KEYS & document.data.keys():
        todo = "name the fabric.yaml that says `inventory: …`"
        raise InputError.of("a spec, with name and topology", "an inventory", todo, document.file)
    named = document.data.get("inventory")
    if isinstance(source, Mapping) and isinstance(named, dict):
        document.data.pop("inventory")
        inventory = named if inventory is None else inventory
    hardware: Document | None = None
    try:
        if inventory is not None:
            hardware = read_or_take(inventory)
        elif isinstance(named, str):
            hardware = _named(source, document)
    except InputError as error:
        problems += error.problems
    _beside_its_fabric(source, document.data.get("topology"))
    spec, findings = _spec(document.data)
    problems += document.report(findings)
    problems += _in_graph(spec)
    demand: TextFile | None = None
    try:
        demand = _demand(source, document, spec) if spec else None
    except InputError as error:
        problems += error.problems
    examined = _examined(hardware) if hardware else None
    if hardware and examined:
        problems += hardware.report([*examined.findings, *check_nodes(document.data, examined)])
    if spec is None or problems:
        raise InputError(_in_order(problems, document))
    value = examined.inventory if examined else None
    return LoadedFabric(spec, value, document, hardware, demand=demand)


def _demand(
    source: str | Path | Mapping[str, Any], document: Document, spec: FabricSpec
) -> TextFile | None:
    """The file that `routing.demand` names; None where it names none.

    Raises:
        InputError: it cannot be read.
    """
    name = spec.routing.demand
    if name in (None, WORST_CASE):
        return None
    try:
        return read_text(_resolved(source, str(name)))
    except Unreadable as error:
        problems = document.unreadable(("routing", "demand"), error).problems
        meant = did_you_mean(str(name), (WORST_CASE,))
        raise InputError(
            replace(problem, todo=meant or problem.todo) for problem in problems
        ) from None


def _spec(data: dict[str, Any]) -> tuple[FabricSpec | None, list[Finding]]:
    """fabric.yaml as a value, and every mistake in it; none is said twice of a key."""
    spec, findings = checked(FabricSpec, data)
    said = {finding.path for finding in findings}
    return spec, [*findings, *(f for f in check_spec(data, spec) if f.path not in said)]


def _examined(hardware: Document) -> Examined:
    from inventory.inventory_file import examine

    return examine(hardware)


def _in_order(problems: Iterable[Problem], first: Document) -> list[Problem]:
    """By file, that of the fabric first, and line."""
    return sorted(problems, key=lambda p: (p.file != first.file, p.file, p.line))


def _named(source: str | Path | Mapping[str, Any], document: Document) -> Document:
    """The inventory that a fabric names; its file name is relative to the fabric's.

    Raises:
        InputError: it cannot be read.
    """
    named, key = document.data["inventory"], ("inventory",)
    if named == str(source) == STDIN:
        todo = "the fabric itself is read from standard input"
        raise InputError(document.problem(key, "a file name", "-", todo))
    try:
        return read(_resolved(source, named))
    except Unreadable as error:
        raise document.unreadable(key, error) from None


def _resolved(source: str | Path | Mapping[str, Any], named: str) -> str | Path:
    """A file that a fabric names: relative to the fabric's own."""
    relative = STDIN not in (named, str(source)) and not isinstance(source, Mapping)
    return Path(str(source)).parent / named if relative else named


def _beside_its_fabric(source: str | Path | Mapping[str, Any], topology: Any) -> None:
    """Make the name of a graph's file, as `topology` says it, one that can be opened."""
    if isinstance(topology, dict) and isinstance(topology.get("file"), str):
        topology["file"] = str(_resolved(source, topology["file"]))


def _in_graph(spec: FabricSpec | None) -> list[Problem]:
    """Mistakes in the file of a graph, with their lines."""
    if spec is None or spec.topology.file is None:
        return []
    wrong = check_topology(spec.topology.family, spec.topology.parameters())
    return [problem for problem in wrong if problem.file]


def require_one_plane(loaded: LoadedFabric) -> None:
    """Pass where the fabric has one plane.

    Raises:
        InputError: it has several.
    """
    if (count := loaded.spec.planes) > 1:
        todo = "compile it, and name the folder of a plane: BUILD/plane-1"
        with loaded.stage() as findings:
            findings.append(Finding(("planes",), "one plane here", str(count), todo))


def schema(kind: Literal["fabric", "inventory"]) -> dict[str, Any]:
    """The JSON schema of fabric.yaml or inventory.yaml, for an editor's completion."""
    from inventory.inventory_file import schema_of
    from inventory.model import Inventory

    return schema_of(FabricSpec if kind == "fabric" else Inventory)
