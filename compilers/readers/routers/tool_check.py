"""The check of what tools get: that they name every node, and files that are there.

They forward nothing. The files that they name are looked for where their folder is there: it may be
written later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.readers.routers.router_text import lines_of
from compilers.tables.build import Build


def check_ansible(build: Build, _: object, folder: Path, *__: object) -> EmittedReport:
    """Compare an inventory of Ansible with the build."""
    check = _ToolCheck(build, folder, "inventory.yaml")
    for name, facts in check.tree.get("fabric", {}).get("hosts", {}).items():
        check.node(name, [facts["polarfab_folder"]], facts.get("ansible_host", ""))
    return check.report("ansible")


def check_containerlab(build: Build, _: object, folder: Path, *__: object) -> EmittedReport:
    """Compare the nodes and the links of a lab with the build."""
    check = _ToolCheck(build, folder, "topology.clab.yml")
    topology, w = check.tree.get("topology", {}), build.wiring
    for name, facts in topology.get("nodes", {}).items():
        binds = [bind.partition(":")[0] for bind in facts.get("binds", [])]
        files = [*binds, *[facts[k] for k in ("startup-config",) if k in facts]]
        if name not in w.host_names:
            check.node(name, [f for f in files if "/" in f])
    ends = [end for link in topology.get("links", []) for end in link["endpoints"]]
    for end, count in Counter(ends).items():
        if count > 1:
            check.differ(end, f"{end} in {count} links", "a port has one cable")
    names = [end.partition(":")[0] for end in ends]
    said = Counter(frozenset(pair) for pair in zip(names[::2], names[1::2], strict=True))
    wanted = check.cables() if check.tree else said
    for pair in (said - wanted) + (wanted - said):
        words = " and ".join(sorted(pair))
        check.differ(min(pair), f"{said[pair]} links of {words}", f"{wanted[pair]}")
    return check.report("containerlab")


class _ToolCheck:
    """The comparison of one file of nodes."""

    def __init__(self, build: Build, folder: Path, name: str) -> None:
        self.build, self.folder, self.file = build, folder, folder / name
        self.found = DifferenceList()
        self.named: set[str] = set()
        try:
            self.text = self.file.read_text()
            self.tree = _tree(self.file)
        except (OSError, ValueError) as error:
            self.text, self.tree = "", {}
            self.found.add(self.file, 0, f"cannot be read: {error}", "nodes and their files")
        w = build.wiring
        self.management = {
            name: address
            for name, address, there in zip(
                w.names, w.management, build.topology.present.tolist(), strict=True
            )
            if there
        }

    def differ(self, name: str, says: str, should: str) -> None:
        """Count a difference at the line where a name occurs first."""
        line = next(iter(lines_of(self.text, [f'"{name}'])))
        self.found.add(self.file, line, says, should)

    def node(self, name: str, files: Iterable[str], address: str | None = None) -> None:
        """Compare a node: its files, and its address, "" where the tool uses its name."""
        self.named.add(name)
        if name not in self.management:
            self.differ(name, f"node {name}", "there is none of that name")
            return
        wanted = self.management[name]
        if address not in (None, wanted):
            self.differ(name, f"{name} at {address or 'its name'}", wanted or "its name")
        for file in files:
            parts = Path(file).parts
            if name not in parts:
                self.differ(name, f"{name} gets {file}", f"a folder {name}")
            elif (self.folder / parts[0]).is_dir() and not (self.folder / file).exists():
                self.differ(name, f"{name} gets {file}", "a file that is there")

    def cables(self) -> Counter[frozenset[str]]:
        """How many cables join two nodes, hosts included."""
        return Counter(self._cables())

    def _cables(self) -> Iterator[frozenset[str]]:
        w = self.build.wiring
        hosts = w.host_port.shape[1]
        for vertex, name in enumerate(w.names):
            for far in w.far[vertex].tolist():
                if far >= vertex:
                    yield frozenset((name, w.names[far]))
            for number, port in enumerate(w.host_port[vertex].tolist()):
                if port:
                    yield frozenset((name, w.host_names[vertex * hosts + number]))

    def report(self, target: str) -> EmittedReport:
        """What was found."""
        for name in sorted(self.management.keys() - self.named) if self.tree else ():
            self.found.add(self.file, 0, "nothing of it", f"node {name}")
        found = self.found
        return EmittedReport(target, len(self.named), 0, 0, found.count, tuple(found.examples))


def _tree(file: Path) -> dict[str, Any]:
    """The mapping in a file of YAML.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no mapping.
    """
    import yaml

    try:
        tree = yaml.load(file.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if not isinstance(tree, dict):
        raise ValueError("no mapping")
    return tree
