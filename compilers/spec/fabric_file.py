"""Load fabric.yaml and the inventory it names, and check them against each other.

The texts of errors: a wrong type, key or value in `inventory.document_errors`, the rules of a field
in `fabric_spec`, between fields in `cross_checks`, of a family in `compilers.topology.families`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from compilers.spec.cross_checks import check_nodes, check_spec
from compilers.spec.fabric_spec import FabricSpec
from inventory.document_errors import checked
from inventory.inventory_file import examine, schema_of
from inventory.model import Inventory
from inventory.problems import Finding, InputError, KeyPath, Problem, Refused, few
from inventory.yamlfile import STDIN, Document, Unreadable, read, read_or_take

HARDWARE_KEYS = {"node_types", "nodes", "generate", "racks"}
"""Keys by which an inventory.yaml is known where a fabric.yaml belongs."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedFabric:
    """A spec and inventory that fit each other, and the documents that they were read from.

    inventory is None where the spec names none. plane is from 1 where this is one of several planes
    (`compilers.planes`), 0 elsewhere; places then tells where entries of the inventory's lists
    stand in its file.
    """

    spec: FabricSpec
    inventory: Inventory | None
    fabric_document: Document
    inventory_document: Document | None
    plane: int = 0
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, str]:
        """The SHA-256 digest of each file that was read, by its role."""
        documents = {"fabric": self.fabric_document, "inventory": self.inventory_document}
        return {role: document.sha256 for role, document in documents.items() if document}

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Pass where there are none.

        Raises:
            InputError: there are, with files and lines.
        """
        with self.reported(findings):
            pass

    @contextmanager
    def reported(self, findings: Iterable[Finding] = ()) -> Iterator[None]:
        """These findings, and those of the passes within, as one error with files and lines.

        Raises:
            InputError: there are any.
        """
        problems = [self._problem(finding) for finding in findings]
        try:
            yield
        except Refused as refused:
            problems += [self._problem(finding) for finding in refused.findings]
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(_in_order(few(problems), self.fabric_document)) from None

    def _problem(self, finding: Finding) -> Problem:
        """In the document that the first key tells; of a plane, with the places in the file."""
        if self.plane:
            path, also = self._in_file(finding.path), self._in_file(finding.also)
            given = f"{finding.given} (plane {self.plane})"
            finding = replace(finding, path=path, also=also, given=given)
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
    spec, findings = _spec(document.data)
    problems += document.report(findings)
    known = examine(hardware) if hardware else None
    if hardware and known:
        problems += hardware.report([*known.findings, *check_nodes(document.data, known)])
    if spec is None or problems:
        raise InputError(_in_order(problems, document))
    return LoadedFabric(spec, known.inventory if known else None, document, hardware)


def _spec(data: dict[str, Any]) -> tuple[FabricSpec | None, list[Finding]]:
    """fabric.yaml as a value, and every mistake in it; none is said twice of a key."""
    spec, findings = checked(FabricSpec, data)
    said = {finding.path for finding in findings}
    return spec, [*findings, *(f for f in check_spec(data) if f.path not in said)]


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
    beside = STDIN not in (named, str(source)) and not isinstance(source, Mapping)
    try:
        return read(Path(str(source)).parent / named if beside else named)
    except Unreadable as error:
        raise document.unreadable(key, error) from None


def require_one_plane(loaded: LoadedFabric) -> None:
    """Pass where the fabric has one plane.

    Raises:
        InputError: it has several.
    """
    if (count := loaded.spec.planes) > 1:
        todo = "compile it, and name the folder of a plane: BUILD/plane-1"
        loaded.refuse([Finding(("planes",), "one plane here", str(count), todo)])


def schema(kind: Literal["fabric", "inventory"]) -> dict[str, Any]:
    """The JSON schema of fabric.yaml or inventory.yaml, for an editor's completion."""
    return schema_of(FabricSpec if kind == "fabric" else Inventory)
