"""Open vSwitch's database: a whole configuration in one transaction (RFC 7047).

A thousand bridges with thirty thousand ports are up in seconds this way, where a command a bridge
takes minutes: the switch looks at its whole configuration after each.
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
"""Seconds that the switch may take to do what a transaction says."""
PROBE = 60_000
"""Milliseconds before a silent controller is asked: while thousands of flows arrive it is busy."""
OVSDB_READ_BYTES = 1 << 20

Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a bridge: its interface's name, its OpenFlow number and the other end.

    peer is the patch port that it is cabled to, "" for a network interface that is there.
    """

    name: str
    number: int
    peer: str = ""

    def row(self) -> Operation:
        """Its row in the table Interface."""
        row: Operation = {"name": self.name, "ofport_request": self.number}
        if self.peer:
            row |= {"type": "patch", "options": _map({"peer": self.peer})}
        return row


@dataclass(frozen=True, slots=True)
class BridgeRow:
    """A bridge in the userspace datapath that forwards nothing until it is told.

    datapath_id is 64 bits. controller is HOST:PORT of its OpenFlow 1.3 controller, "" for none.
    """

    name: str
    datapath_id: int
    ports: Sequence[Port]
    controller: str = ""

    def operations(self) -> list[Operation]:
        """What inserts its rows: ports, interfaces, controller, and the bridge as `_id(name)`."""
        local = {"name": self.name, "type": "internal"}
        made = [*_port_operations(local)]
        for port in self.ports:
            made += _port_operations(port.row())
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
                "inactivity_probe": PROBE,
                "connection_mode": "out-of-band",
            }
            made.append(_insert("Controller", target, name))
            row["controller"] = _named(name)
        return [*made, _insert("Bridge", row, _id("bridge", self.name))]


class Database:
    """The configuration database at a Unix socket, and the switch that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add_bridges(self, bridges: Iterable[BridgeRow]) -> None:
        """Make all these bridges at once; returns when they are there.

        Raises:
            OpenVSwitchError: they are refused, or an interface could not be opened.
        """
        self.change([], list(bridges))

    def add_ports(self, ports: Iterable[tuple[str, Port]], alone: bool = False) -> None:
        """Add ports to bridges, by the bridges' names; `alone`: their other ends may be away.

        Raises:
            OpenVSwitchError: they are refused, or an interface could not be opened.
        """
        self.apply(_added(ports), alone)

    def remove_ports(self, ports: Iterable[tuple[str, str]], alone: bool = False) -> None:
        """Remove ports from bridges, by the names of both; `alone`: their other ends stay.

        Raises:
            OpenVSwitchError: it is refused.
        """
        self.apply(self._removed([], list(ports)), alone)

    def change(self, before: Sequence[BridgeRow], after: Sequence[BridgeRow]) -> None:
        """Make bridges of before into those of after, all at once; returns when they are so.

        What both have stays untouched. A port of the same name with another peer is made anew.

        Raises:
            OpenVSwitchError: it is refused, or an interface could not be opened.
        """
        old, new = ({bridge.name: bridge for bridge in bridges} for bridges in (before, after))
        made = [new[name] for name in new if name not in old]
        stay = [(name, set(old[name].ports), set(new[name].ports)) for name in new if name in old]
        removed = [(name, port.name) for name, here, there in stay for port in here - there]
        operations = self._removed([name for name in old if name not in new], removed)
        for bridge in made:
            operations += bridge.operations()
        named = [_named(_id("bridge", bridge.name)) for bridge in made]
        operations.append(_mutate("Open_vSwitch", [], "bridges", "insert", named))
        added = ((name, port) for name, here, there in stay for port in there - here)
        self.apply([*operations, *_added(added)])

    def _removed(self, bridges: list[str], ports: list[tuple[str, str]]) -> list[Operation]:
        """What removes bridges by name, and ports by their bridges' names and their own."""
        asked = [("Bridge", name) for name in bridges] + [("Port", name) for _, name in ports]
        if not asked:
            return []
        found = self.transact([_select(table, _is(name), ["_uuid"]) for table, name in asked])
        rows = [[row["_uuid"] for row in answer["rows"]] for answer in found]
        every = [uuid for uuids in rows[: len(bridges)] for uuid in uuids]
        return [
            _mutate("Open_vSwitch", [], "bridges", "delete", every),
            *(
                _mutate("Bridge", _is(bridge), "ports", "delete", uuids)
                for (bridge, _), uuids in zip(ports, rows[len(bridges) :], strict=True)
            ),
        ]

    def apply(self, operations: list[Operation], alone: bool = False) -> None:
        """Do it, and wait until the switch has done it; `alone`: other ends of ports may be away.

        Raises:
            OpenVSwitchError: it is refused, or an interface could not be opened.
        """
        count = {"op": "mutate", "table": "Open_vSwitch", "where": []}
        answers = self.transact(
            [
                *operations,
                {**count, "mutations": [["next_cfg", "+=", 1]]},
                _select("Open_vSwitch", [], ["next_cfg"]),
            ]
        )
        self.transact(
            [
                {
                    "op": "wait",
                    "table": "Open_vSwitch",
                    "where": [],
                    "columns": ["cur_cfg"],
                    "until": "==",
                    "rows": [{"cur_cfg": answers[-1]["rows"][0]["next_cfg"]}],
                    "timeout": OVSDB_PATIENCE * 1000,
                }
            ]
        )
        failed = self.transact(
            [_select("Interface", [["error", "!=", ["set", []]]], ["name", "error"])]
        )[0]["rows"]
        if failed and not alone:
            raise OpenVSwitchError(f"interface {failed[0]['name']}: {failed[0]['error']}")

    def transact(self, operations: list[Operation]) -> list[dict[str, Any]]:
        """The answers to the operations of one transaction (RFC 7047, §4.1.3 and §5.2).

        Raises:
            OpenVSwitchError: it was refused, and nothing was changed.
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
        if wrong := next((result for result in results if result and "error" in result), None):
            raise OpenVSwitchError(f"{wrong['error']}: {wrong.get('details', '')}")
        return results


def _answer(connection: socket.socket) -> dict[str, Any]:
    """The answer to our request; the server's own requests, echoes, are answered meanwhile."""
    data = bytearray()
    while more := connection.recv(OVSDB_READ_BYTES):
        data += more
        if not more.endswith(b"}"):
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


def _port_operations(interface: Operation) -> tuple[Operation, Operation]:
    name = str(interface["name"])
    port = {"name": name, "interfaces": _named(_id("interface", name))}
    return _insert("Interface", interface, _id("interface", name)), _insert(
        "Port", port, _id("port", name)
    )


def _added(ports: Iterable[tuple[str, Port]]) -> list[Operation]:
    """What adds ports to bridges, by the bridges' names."""
    operations: list[Operation] = []
    for bridge, port in ports:
        operations += _port_operations(port.row())
        named = [_named(_id("port", port.name))]
        operations.append(_mutate("Bridge", _is(bridge), "ports", "insert", named))
    return operations


def _id(kind: str, name: str) -> str:
    """A name for a new row within its transaction: an identifier."""
    return re.sub(r"\W", "_", f"{kind}_{name}")


def _named(name: str) -> list[str]:
    return ["named-uuid", name]


def _insert(table: str, row: Operation, name: str) -> Operation:
    return {"op": "insert", "table": table, "row": row, "uuid-name": name}


def _select(table: str, where: list[Any], columns: list[str]) -> Operation:
    return {"op": "select", "table": table, "where": where, "columns": columns}


def _mutate(table: str, where: list[Any], column: str, how: str, values: list[Any]) -> Operation:
    mutation = [column, how, _set(values)]
    return {"op": "mutate", "table": table, "where": where, "mutations": [mutation]}


def _is(name: str) -> list[Any]:
    return [["name", "==", name]]


def _set(values: Iterable[Any]) -> list[Any]:
    return ["set", list(values)]


def _map(values: dict[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]
