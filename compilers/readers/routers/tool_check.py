"""The check of inventories for tools: Ansible's inventory.yaml and Containerlab's topology.

These files forward nothing, so they are compared by names alone: every node is named, with its
management address, with files that exist, and in a lab with its cables. The folder of a node may be
rendered later; as long as it does not exist, its files are not looked for. The targets ansible and
containerlab have the check as their `fabric_check`.

A *strange* character is one that polarfab never writes: other than ASCII, or a control character
(`exact_text`). Readers may take it for a blank or the end of a line, and the tool may not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compilers.readers.emitted_report import DifferenceList, EmittedReport
from compilers.readers.exact_text import (
    bare,
    exact_lines,
    read_exact,
    strange,
    strange_line,
    visible,
)
from compilers.readers.grammar.yaml_tree import yaml_node
from compilers.readers.routers.router_text import lines_of
from compilers.tables.build import Build


def check_ansible(build: Build, _: object, folder: Path, *__: object) -> EmittedReport:
    """Compare an inventory of Ansible with the build.

    Further arguments of `Target.fabric_check` say nothing here.
    """
    check = _ToolCheck(build, folder, "inventory.yaml", ("push.yaml",))
    with check.noting_wrong_types():
        fabric = check.tree.get("fabric", {})
        for group in (fabric, *fabric.get("children", {}).values()):
            for name, variables in group.get("hosts", {}).items():
                address = variables.get("ansible_host", "")
                check.compare_node(name, [variables["polarfab_folder"]], address)
    return check.report("ansible")


def check_containerlab(build: Build, _: object, folder: Path, *__: object) -> EmittedReport:
    """Compare the nodes and the links of a lab with the build."""
    check = _ToolCheck(build, folder, "topology.clab.yml", ("daemons",))
    with check.noting_wrong_types():
        _compare_lab(check, build)
    return check.report("containerlab")


def _compare_lab(check: _ToolCheck, build: Build) -> None:
    """Compare the nodes and the links of a lab."""
    topology = check.tree.get("topology", {})
    for name, settings in topology.get("nodes", {}).items():
        files = [bind.partition(":")[0] for bind in settings.get("binds", [])]
        if "startup-config" in settings:
            files.append(settings["startup-config"])
        if name not in build.wiring.host_names:
            # The bind `../frr/s0/frr.conf:/etc/frr/frr.conf` names a file of the switch s0.
            # `daemons:/etc/frr/daemons` names one beside the folders, which all switches share.
            check.compare_node(name, [file for file in files if "/" in file])
    ends = [end for link in topology.get("links", []) for end in link["endpoints"]]
    for end, count in Counter(ends).items():
        if count > 1:
            check.add_difference(end, f"{end} in {count} links", "a port has one cable")
    names = [end.partition(":")[0] for end in ends]
    # Each link has two ends, which follow each other.
    links = Counter(frozenset(pair) for pair in zip(names[::2], names[1::2], strict=True))
    cables = check.cables() if check.tree else links
    for pair in (links - cables) + (cables - links):
        nodes = " and ".join(sorted(pair))
        check.add_difference(min(pair), f"{links[pair]} links of {nodes}", f"{cables[pair]}")


class _ToolCheck:
    """The comparison of a tool's file of nodes with the build.

    Args:
        build: the fabric that the file is of.
        folder: where the tool's files are.
        name: the name of the file.
        others: further files that may exist, of which only the characters are checked.
    """

    def __init__(self, build: Build, folder: Path, name: str, others: Iterable[str]) -> None:
        self.build, self.folder, self.file = build, folder, folder / name
        self.differences = DifferenceList()
        """The differences so far."""
        self.named: set[str] = set()
        """The nodes that the file names."""
        self.text, self.tree = self._read()
        """The text of the file, and the mapping in it; "" and {} if it cannot be read."""
        for file_name in others:
            self._check_characters(folder / file_name)
        wiring = build.wiring
        self.management = {
            name: address
            for name, address, present in zip(
                wiring.names, wiring.management, build.topology.present.tolist(), strict=True
            )
            if present
        }
        """The management address of each switch."""

    def _read(self) -> tuple[str, dict[str, Any]]:
        """The text of the file and the mapping in it; "" and {} where it cannot be read."""
        try:
            text = read_exact(self.file)
            return text, _tree(text)
        except OSError as error:
            line, reason = 0, str(error)
        except ValueError as error:
            line, reason = error.args
        self.differences.add(self.file, line, f"cannot be read: {reason}", "nodes and their files")
        return "", {}

    def _check_characters(self, file: Path) -> None:
        """Note the lines of a file with strange characters.

        Comments may have them, except in YAML: there some of them end the line, and with it the
        comment.
        """
        lines = exact_lines(read_exact(file)) if file.exists() else ()
        for line, text in enumerate(lines, 1):
            is_comment = bare(text).startswith("#")  # the text without blanks around it
            if strange(text) and (file.suffix == ".yaml" or not is_comment):
                self.differences.add_unread(file, line, text)

    @contextmanager
    def noting_wrong_types(self) -> Iterator[None]:
        """Note a value of a wrong type, such as a text in the place of a mapping."""
        try:
            yield
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            says = f"values that it never has ({error})"
            self.differences.add(self.file, 0, says, "nodes and their files")

    def add_difference(self, name: str, stated: str, in_build: str) -> None:
        """Count a difference at the line where a name occurs first."""
        line = next(iter(lines_of(self.text, [f'"{name}'])))
        self.differences.add(self.file, line, stated, in_build)

    def compare_node(self, name: str, files: Iterable[str], address: str | None = None) -> None:
        """Compare a node with the build.

        Args:
            name: the name of the node.
            files: the files that the tool loads into it.
            address: its management address, "" where the tool uses the name; None: not stated.
        """
        self.named.add(name)
        if name not in self.management:
            self.add_difference(name, f"node {name}", "there is none of that name")
            return
        planned = self.management[name]
        if address not in (None, planned):
            self.add_difference(name, f"{name} at {address or 'its name'}", planned or "its name")
        for file in files:
            parts = Path(file).parts
            if name not in parts:
                self.add_difference(name, f"{name} gets {file}", f"a folder {name}")
            elif (self.folder / parts[0]).is_dir() and not (self.folder / file).exists():
                self.add_difference(name, f"{name} gets {file}", "a file that is there")

    def cables(self) -> Counter[frozenset[str]]:
        """How many cables join two nodes, hosts included."""
        return Counter(self._cables())

    def _cables(self) -> Iterator[frozenset[str]]:
        """Yield the two nodes at the ends of each cable."""
        wiring = self.build.wiring
        hosts = wiring.host_port.shape[1]
        for vertex, name in enumerate(wiring.names):
            for far in wiring.far[vertex].tolist():  # -1: no link
                if far >= vertex:  # each cable once
                    yield frozenset((name, wiring.names[far]))
            for number, port in enumerate(wiring.host_port[vertex].tolist()):
                if port:
                    yield frozenset((name, wiring.host_names[vertex * hosts + number]))

    def report(self, target: str) -> EmittedReport:
        """The report; a node that the file does not name is a difference."""
        for name in sorted(self.management.keys() - self.named) if self.tree else ():
            self.differences.add(self.file, 0, "nothing of it", f"node {name}")
        return EmittedReport(
            target,
            switches=len(self.named),
            pairs=0,
            delivered=0,
            differences=self.differences.count,
            examples=tuple(self.differences.examples),
        )


def _tree(text: str) -> dict[str, Any]:
    """The mapping in a text of YAML.

    Raises:
        ValueError: (line, reason) it is no mapping.
    """
    import yaml

    if character := strange(text):
        raise ValueError(strange_line(text), f"the character {visible(character[0])}")
    try:
        node = yaml_node(text)
    except yaml.YAMLError as error:
        raise ValueError(0, str(error)) from error
    try:
        tree = yaml.CSafeLoader("").construct_document(node) if node else None
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(0, f"a value that cannot be read ({error})") from error
    if not isinstance(tree, dict):
        raise ValueError(0, "no mapping")
    return tree
