"""Bridges and ports of Open vSwitch, in transactions of its configuration database (RFC 7047).

`mininet_scenarios.ovs.ovsfabric` describes bridges as `BridgeRow`s, and calls `Database.change`. A
thousand bridges with thirty thousand ports are up in seconds this way. With a command for each
bridge this takes minutes, because the switch reads its whole configuration after each command.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_scenarios.ovs.openvswitch import OpenVSwitchError

OVSDB_PATIENCE = 300
"""Seconds that the switch may take to carry out a transaction."""
INACTIVITY_PROBE = 60_000
"""Milliseconds of silence after which a bridge sends its controller an echo request. It is long,
because a controller is busy while it sends thousands of flows."""
OVSDB_READ_BYTES = 1 << 20
"""The most bytes that are read at once."""
Operation = dict[str, Any]
"""An operation of a transaction, or a part of one, as JSON (RFC 7047, §5.2)."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a bridge."""

    name: str
    """The name of its interface."""
    number: int
    """Its OpenFlow number."""
    peer: str = ""
    """The patch port that it is cabled to; "" for an existing network interface."""

    def row(self) -> Operation:
        """Its row in the table Interface."""
        row: Operation = {"name": self.name, "ofport_request": self.number}
        if self.peer:
            row |= {"type": "patch", "options": _map({"peer": self.peer})}
        return row


@dataclass(frozen=True, slots=True)
class BridgeRow:
    """A bridge in the userspace datapath that forwards nothing until it has flows."""

    name: str
    """The name of the bridge."""
    datapath_id: int
    """Its OpenFlow datapath id, of 64 bits."""
    ports: Sequence[Port]
    """Its ports."""
    controller: str = ""
    """HOST:PORT of its OpenFlow 1.3 controller; "" for none."""

    def operations(self) -> list[Operation]:
        """The operations that insert the rows of its ports, its controller and itself."""
        local = {"name": self.name, "type": "internal"}
        operations = [*_port_operations(local)]
        for port in self.ports:
            operations += _port_operations(port.row())
        row: Operation = {
            "name": self.name,
            "datapath_type": "netdev",
            "fail_mode": "secure",
            "protocols": "OpenFlow13",
            "other_config": _map(
                {"datapath-id": f"{self.datapath_id:016x}", "disable-in-band": "true"}
            ),
            "ports": _set(
                _named(_id("port", p)) for p in [self.name, *(p.name for p in self.ports)]
            ),
        }
        if self.controller:
            name = _id("controller", self.name)
            target = {
                "target": f"tcp:{self.controller}",
                "max_backoff": 1000,
                "inactivity_probe": INACTIVITY_PROBE,
                "connection_mode": "out-of-band",
            }
            operations.append(_insert("Controller", target, name))
            row["controller"] = _named(name)
        return [*operations, _insert("Bridge", row, _id("bridge", self.name))]


class Database:
    """The configuration database at a Unix socket, and the switch that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def change(
        self,
        before: Sequence[BridgeRow],
        after: Sequence[BridgeRow],
        has_all_peers: bool = True,
    ) -> None:
        """Change the bridges in one transaction; returns when the switch has carried it out.

        A bridge or a port that stays the same is not touched. A port of the same name with another
        peer is made anew. The database deletes rows that nothing refers to (RFC 7047, §3.2).

        Args:
            before: the bridges that exist.
            after: the bridges that are to exist.
            has_all_peers: whether the other end of every patch port is among their ports. If not,
                interfaces that cannot be opened are no error.

        Raises:
            OpenVSwitchError: the change was refused, or an interface could not be opened.
        """
        old = {bridge.name: bridge for bridge in before}
        new = {bridge.name: bridge for bridge in after}
        new_bridges = [new[name] for name in new if name not in old]
        named = [_named(_id("bridge", bridge.name)) for bridge in new_bridges]
        operations = [row for bridge in new_bridges for row in bridge.operations()]
        operations.append(_mutate("Open_vSwitch", [], "bridges", "insert", named))
        removed = self._rows("Bridge", [name for name in old if name not in new])
        operations.append(_mutate("Open_vSwitch", [], "bridges", "delete", removed))
        for name in new.keys() & old.keys():
            operations += self._port_changes(old[name], new[name])
        self.apply(operations)
        failed = self.transact([_select("Interface", [["error", "!=", _set([])]], "name", "error")])
        if has_all_peers and failed[0]["rows"]:
            row = failed[0]["rows"][0]
            raise OpenVSwitchError(f"interface {row['name']}: {row['error']}")

    def _port_changes(self, old: BridgeRow, new: BridgeRow) -> list[Operation]:
        """The operations that give a bridge other ports."""
        operations: list[Operation] = []
        old_ports, new_ports = set(old.ports), set(new.ports)
        for port in new_ports - old_ports:
            operations += _port_operations(port.row())
        added = [_named(_id("port", port.name)) for port in new_ports - old_ports]
        removed = self._rows("Port", [port.name for port in old_ports - new_ports])
        for mutator, ports in (("delete", removed), ("insert", added)):
            if ports:
                operations.append(_mutate("Bridge", _is(new.name), "ports", mutator, ports))
        return operations

    def _rows(self, table: str, names: Sequence[str]) -> list[Any]:
        """The UUIDs of the rows of these names, by which other rows refer to them."""
        selections = [_select(table, _is(name), "_uuid") for name in names]
        answers = self.transact(selections) if selections else []
        return [row["_uuid"] for answer in answers for row in answer["rows"]]

    def apply(self, operations: list[Operation]) -> None:
        """Carry out operations in one transaction, and wait until the switch follows.

        The transaction counts `next_cfg` up. The switch sets `cur_cfg` to the same number when it
        has applied the configuration.

        Raises:
            OpenVSwitchError: the transaction was refused.
        """
        count_up = {
            "op": "mutate",
            "table": "Open_vSwitch",
            "where": [],
            "mutations": [["next_cfg", "+=", 1]],
        }
        answers = self.transact([*operations, count_up, _select("Open_vSwitch", [], "next_cfg")])
        wait = {
            "op": "wait",
            "table": "Open_vSwitch",
            "where": [],
            "until": "==",
            "columns": ["cur_cfg"],
            "rows": [{"cur_cfg": answers[-1]["rows"][0]["next_cfg"]}],
            "timeout": OVSDB_PATIENCE * 1000,
        }
        self.transact([wait])

    def transact(self, operations: list[Operation]) -> list[dict[str, Any]]:
        """The answers to the operations of one transaction (RFC 7047, §4.1.3 and §5.2).

        Raises:
            OpenVSwitchError: the transaction was refused, and nothing was changed.
            OSError: the database does not answer.
        """
        request = {"method": "transact", "params": ["Open_vSwitch", *operations], "id": 0}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(OVSDB_PATIENCE)
            connection.connect(str(self.path))
            connection.sendall(json.dumps(request).encode())
            answer = _answer(connection)
        if answer["error"]:
            raise OpenVSwitchError(json.dumps(answer["error"]))
        results: list[dict[str, Any]] = answer["result"]
        for result in results:
            if result and "error" in result:
                raise OpenVSwitchError(f"{result['error']}: {result.get('details', '')}")
        return results


def _answer(connection: socket.socket) -> dict[str, Any]:
    """The answer to our request. The server's own requests, which are echoes, are answered, too."""
    data = bytearray()
    while piece := connection.recv(OVSDB_READ_BYTES):
        data += piece
        if not piece.endswith(b"}"):
            continue
        try:
            message: dict[str, Any] = json.loads(data)
        except ValueError:
            continue
        data.clear()
        if "method" not in message:
            return message
        reply = {"id": message["id"], "result": message["params"], "error": None}
        connection.sendall(json.dumps(reply).encode())
    raise OpenVSwitchError("the database has hung up")


def _port_operations(interface: Operation) -> list[Operation]:
    """The operations that insert a row of the table Interface, and the row of its port."""
    name = str(interface["name"])
    port = {"name": name, "interfaces": _named(_id("interface", name))}
    return [
        _insert("Interface", interface, _id("interface", name)),
        _insert("Port", port, _id("port", name)),
    ]


def _id(kind: str, name: str) -> str:
    """The identifier by which other rows of a transaction refer to a new row.

    Args:
        kind: the kind of row, such as "port".
        name: the name in the row.
    """
    return re.sub(r"\W", "_", f"{kind}_{name}")


def _named(name: str) -> list[str]:
    """A reference to the new row with this identifier."""
    return ["named-uuid", name]


def _insert(table: str, row: Operation, name: str) -> Operation:
    """The operation that inserts a row, with the identifier of the new row."""
    return {"op": "insert", "table": table, "row": row, "uuid-name": name}


def _select(table: str, where: list[Any], *columns: str) -> Operation:
    """The operation that reads columns of the rows that fulfil conditions."""
    return {"op": "select", "table": table, "where": where, "columns": columns}


def _mutate(
    table: str, where: list[Any], column: str, mutator: str, values: list[Any]
) -> Operation:
    """The operation that adds values to a set or removes them (`insert` or `delete`)."""
    mutation = [column, mutator, _set(values)]
    return {"op": "mutate", "table": table, "where": where, "mutations": [mutation]}


def _is(name: str) -> list[Any]:
    """The condition that a row has this name."""
    return [["name", "==", name]]


def _set(values: Iterable[Any]) -> list[Any]:
    """A set, as JSON."""
    return ["set", list(values)]


def _map(values: dict[str, str]) -> list[Any]:
    """A map, as JSON."""
    return ["map", [[key, value] for key, value in values.items()]]
