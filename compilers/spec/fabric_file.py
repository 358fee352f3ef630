"""Load fabric.yaml and the inventory that it names, and check them against each other.

`load_fabric` returns a `LoadedFabric`, with which a compile begins.

Messages about a wrong type, key or value come from `inventory.document_errors`, those about the
rules of a field from `fabric_spec`, those about several fields from `cross_checks`, and those about
a family's parameters from `compilers.topology.families`. Here each gets its file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compilers.spec.allocations import Allocations
from compilers.spec.allocations_file import read_allocations
from compilers.spec.cross_checks import check_nodes, check_spec
from compilers.spec.fabric_spec import FabricSpec
from compilers.spec.installed import InstalledPlane
from compilers.spec.policy import WORST_CASE
from compilers.topology.families import check_topology
from inventory.document_errors import value_and_findings
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
    from inventory.inventory_file import ExaminedInventory
    from inventory.model import Inventory

HARDWARE_KEYS = {"node_types", "nodes", "generate", "racks"}
"""Keys that show that a file is an inventory.yaml where a fabric.yaml is expected."""
Source = str | Path | Mapping[str, Any]
"""A fabric: the name of its file, `-` for standard input, or its content."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFabric:
    """A spec and an inventory that fit each other, and the documents that they were read from."""

    spec: FabricSpec
    """The spec as a value."""
    inventory: Inventory | None
    """The inventory as a value; None if the spec names none."""
    fabric_document: Document
    """The spec as it was read, with its lines."""
    inventory_document: Document | None
    """The inventory as it was read, with its lines; None if the spec names none."""
    plane: int = 0
    """The plane, from 1, if this is one of several (`compilers.planes`); 0 for a whole fabric."""
    indexes_in_file: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For a plane: by key (`nodes`, `cables`, `dead_links`), the index that each entry of its list
    has in the list of the whole file."""
    demand: TextFile | None = None
    """The file that `routing.demand` names; None if it names none."""
    installed: tuple[InstalledPlane, ...] = ()
    """For each plane the nodes, cables and numbers that the previous compile fixed; () for a new
    fabric."""
    allocations_file: Path | None = None
    """The file that `allocations` names; None if it names none."""
    allocations: Mapping[int, Allocations] = field(default_factory=dict)
    """The allocations of each plane in this file; {} where the file does not exist yet."""

    @property
    def inputs(self) -> dict[str, str]:
        """The SHA-256 digest of each file that was read, by its role."""
        graph_file = self.spec.topology.file
        files = {
            "fabric": self.fabric_document,
            "inventory": self.inventory_document,
            "demand": self.demand,
            "graph": read_text(graph_file) if graph_file else None,
        }
        return {role: file.sha256 for role, file in files.items() if file}

    @contextmanager
    def stage(self) -> Iterator[list[Finding]]:
        """Collect the mistakes that a stage of the compile finds, and raise all as one error.

        The block adds findings to the list that it gets. If an `InputError` ends the block, its
        problems come after those in the list. Each gets its file and line.

            with loaded.stage() as findings:
                findings += system_findings(loaded.spec, loaded.inventory)
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
            problems = [self._with_line(problem) for problem in error.problems]
        problems = [*map(self._problem, findings), *problems]
        if problems:
            raise InputError(_sorted_problems(few(problems), self.fabric_document)) from None

    def _with_line(self, problem: Problem) -> Problem:
        """Return a problem with its file and line, if it has a key of fabric.yaml and no file."""
        path = tuple(problem.key.split("."))
        if problem.file or path[0] not in FabricSpec.model_fields:
            return problem
        return self._problem(Finding(path, problem.required, problem.given, problem.todo))

    def _problem(self, finding: Finding) -> Problem:
        """Return the problem for a finding, with the file and line of its key.

        The first key tells which file it is in. Indexes into the lists of a plane become indexes
        into the lists of the file.
        """
        if self.plane:
            path, also = self._key_in_file(finding.path), self._key_in_file(finding.also)
            given = f"{finding.given} (plane {self.plane})"
            finding = replace(finding, path=path, also=also, given=given)
        from inventory.model import Inventory

        document = self.fabric_document
        if self.inventory_document and finding.path[0] in Inventory.model_fields:
            document = self.inventory_document
        return document.placed(finding)

    def _key_in_file(self, path: KeyPath) -> KeyPath:
        """Return a key of a plane's inventory as a key of the file."""
        match path:
            case (str(key), int(i), *rest) if key in self.indexes_in_file:
                return (key, self.indexes_in_file[key][i], *rest)
        return path

    def with_routing(self, **values: str) -> LoadedFabric:
        """Return the fabric with other values in `routing`; digests of its inputs stay the same.

        Raises:
            InputError: these values are wrong. Its problems have keys, but no file and line.
        """
        data = self.fabric_document.data
        data = {**data, "routing": {**data.get("routing", {}), **values}}
        spec, findings = _checked_spec(data)
        if spec is None or findings:
            raise Refused(findings)
        document = Document("", self.fabric_document.sha256, data)
        return replace(self, spec=spec, fabric_document=document)


def load_fabric(
    source: Source,
    document: Document | None = None,
    inventory: Source | None = None,
) -> LoadedFabric:
    """Load a fabric and its inventory, and check them.

    The inventory's file name is relative to the fabric's file. If the source is a mapping, its
    `inventory` may be the inventory itself.

    Args:
        source: the fabric.
        document: the file's content, or the part of it that describes the fabric, if it has been
            read already.
        inventory: used in place of the inventory that the fabric names.

    Raises:
        InputError: names every mistake in either, and where they do not fit.
    """
    problems: list[Problem] = []
    document = document or read_or_take(source)
    if "topology" not in document.data and HARDWARE_KEYS & document.data.keys():
        todo = "name the fabric.yaml that says `inventory: …`"
        raise InputError.of("a spec, with name and topology", "an inventory", todo, document.file)
    inventory_document: Document | None = None
    with _add_problems_to(problems):
        inventory_document = _inventory_document(source, document, inventory)
    _resolve_graph_file(source, document.data.get("topology"))
    spec, findings = _checked_spec(document.data)
    problems += document.report(findings)
    problems += _graph_file_problems(spec)
    demand: TextFile | None = None
    allocations_file: Path | None = None
    allocations: Mapping[int, Allocations] = {}
    if spec:
        with _add_problems_to(problems):
            demand = _read_demand(source, document, spec)
        allocations_file = _allocations_file(source, spec)
        with _add_problems_to(problems):
            allocations = _read_allocations_file(allocations_file, document)
    examined = _examine(inventory_document) if inventory_document else None
    if inventory_document and examined:
        problems += inventory_document.report(
            [*examined.findings, *check_nodes(document.data, examined)]
        )
    if spec is None or problems:
        raise InputError(_sorted_problems(problems, document))
    return LoadedFabric(
        spec=spec,
        inventory=examined.inventory if examined else None,
        fabric_document=document,
        inventory_document=inventory_document,
        demand=demand,
        allocations_file=allocations_file,
        allocations=allocations,
    )


@contextmanager
def _add_problems_to(problems: list[Problem]) -> Iterator[None]:
    """Catch an error that ends the block, and add its problems to the list."""
    try:
        yield
    except InputError as error:
        problems += error.problems


def _read_demand(source: Source, document: Document, spec: FabricSpec) -> TextFile | None:
    """Read the file that `routing.demand` names; None if it names none.

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
        # `worst-case` is a keyword and no file, so a misspelt keyword is looked for as a file.
        todo = did_you_mean(str(name), (WORST_CASE,))
        raise InputError(
            replace(problem, todo=todo or problem.todo) for problem in problems
        ) from None


def _allocations_file(source: Source, spec: FabricSpec) -> Path | None:
    """Return the path of the file that `allocations` names; None if it names none."""
    return Path(_resolved(source, str(spec.allocations))) if spec.allocations else None


def _read_allocations_file(path: Path | None, document: Document) -> Mapping[int, Allocations]:
    """Read the file of allocations; {} where it does not exist yet.

    Raises:
        InputError: it cannot be read, or is no such file.
    """
    if path is None or not path.exists():
        return {}
    try:
        return read_allocations(read_text(path).text, str(path))
    except Unreadable as error:
        raise document.unreadable(("allocations",), error) from None


def _checked_spec(data: dict[str, Any]) -> tuple[FabricSpec | None, list[Finding]]:
    """Return fabric.yaml as a value, and all mistakes in it; None if a section is wrong.

    A key with a mistake of its own gets no finding about how it fits others.
    """
    spec, findings = value_and_findings(FabricSpec, data)
    wrong_keys = {finding.path for finding in findings}
    cross_findings = check_spec(data, spec)
    findings += [finding for finding in cross_findings if finding.path not in wrong_keys]
    return spec, findings


def _examine(inventory_document: Document) -> ExaminedInventory:
    """Check an inventory's document. Its models are imported only if a fabric has an inventory."""
    from inventory.inventory_file import examine

    return examine(inventory_document)


def _sorted_problems(problems: Iterable[Problem], fabric_document: Document) -> list[Problem]:
    """Sort problems by file, that of the fabric first, and line."""

    def rank(problem: Problem) -> tuple[bool, str, int]:
        return problem.file != fabric_document.file, problem.file, problem.line

    return sorted(problems, key=rank)


def _inventory_document(
    source: Source, document: Document, inventory: Source | None
) -> Document | None:
    """The document of the inventory; None if the fabric names none.

    Args:
        source: the fabric.
        document: its content. An inventory in it is removed, as the spec has only a name there.
        inventory: used in place of the inventory that the fabric names.

    Raises:
        InputError: the inventory cannot be read.
    """
    name_or_content = document.data.get("inventory")
    if isinstance(source, Mapping) and isinstance(name_or_content, dict):
        document.data.pop("inventory")
        inventory = name_or_content if inventory is None else inventory
    if inventory is not None:
        return read_or_take(inventory)
    return _read_inventory(source, document) if isinstance(name_or_content, str) else None


def _read_inventory(source: Source, document: Document) -> Document:
    """Read the inventory that a fabric names.

    Raises:
        InputError: it cannot be read.
    """
    name, path = document.data["inventory"], ("inventory",)
    if name == str(source) == STDIN:
        todo = "the fabric itself is read from standard input"
        raise InputError(document.problem(path, "a file name", "-", todo))
    try:
        return read(_resolved(source, name))
    except Unreadable as error:
        raise document.unreadable(path, error) from None


def _resolved(source: Source, name: str) -> str | Path:
    """Return the path of a file that a fabric names, which is relative to the fabric's file."""
    is_relative = STDIN not in (name, str(source)) and not isinstance(source, Mapping)
    return Path(str(source)).parent / name if is_relative else name


def _resolve_graph_file(source: Source, topology: Any) -> None:
    """Make the name of a graph's file in the section `topology` relative to the fabric's file."""
    if isinstance(topology, dict) and isinstance(topology.get("file"), str):
        topology["file"] = str(_resolved(source, topology["file"]))


def _graph_file_problems(spec: FabricSpec | None) -> list[Problem]:
    """Return the mistakes in the file of a graph, with their lines.

    `cross_checks` reports mistakes in the keys that lead to it.
    """
    if spec is None or spec.topology.file is None:
        return []
    problems = check_topology(spec.topology.family, spec.topology.parameters())
    return [problem for problem in problems if problem.file]


def require_one_plane(loaded: LoadedFabric) -> None:
    """Pass when a fabric has one plane.

    Raises:
        InputError: it has several.
    """
    count = loaded.spec.planes
    if count > 1:
        todo = "compile it, and name the folder of a plane: BUILD/plane-1"
        with loaded.stage() as findings:
            findings.append(Finding(("planes",), "one plane here", str(count), todo))


def schema(kind: Literal["fabric", "inventory"]) -> dict[str, Any]:
    """Return the JSON schema of fabric.yaml or inventory.yaml, for an editor's completion."""
    from inventory.json_schema import schema_of
    from inventory.model import Inventory

    return schema_of(FabricSpec if kind == "fabric" else Inventory)
