"""Reader of the description of a subnet, in the form of the simulator ibsim.

`checked_cables` calls `read_subnet`, and compares the devices and cables with a build. Lines that
make no sense go to a `DifferenceList`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from compilers.readers.emitted_report import DifferenceList
from extensions.infiniband.settings_text import ABSENT, TextValue, plain_lines

NUMBER = "0|[1-9][0-9]{0,9}"
"""A number without leading zeros."""
CABLE = re.compile(
    rf'\[({NUMBER})\](?:\(([0-9a-f]{{1,16}})\))?[ \t]+"([SH]-[0-9a-f]{{16}})"\[({NUMBER})\]'
)
"""The line of a cable: `[1](250460000010003) "S-0250460000010000"[36]`; hosts state a port GUID."""
DEVICE = re.compile(rf'(Ca|Switch)[ \t]+({NUMBER})[ \t]+"([SH]-[0-9a-f]{{16}})"[ \t]+# "(.*)"')
"""The line of a device: `Switch 36 "S-0250460000010000" # "leaf0"`."""
ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|caguid|switchguid)=(\S+)")
"""The line of an attribute: `vendid=0x0`."""


class DevicePort(NamedTuple):
    """An end of a cable."""

    device: str
    """The device: its id in the subnet (`S-…` or `H-…`), or its name in the topology."""
    port: int
    """The number of the port."""


@dataclass(frozen=True, slots=True)
class Device:
    """A switch, or a host's adapter, of a subnet."""

    name: str
    """The name in the comment behind the device."""
    ports: int
    """How many ports it has."""
    line: int
    """The line of the device."""


@dataclass(frozen=True, slots=True)
class CableEnd:
    """The cable at a port, as a line states it."""

    far: DevicePort
    """The other end."""
    line: int
    """The number of the line."""


@dataclass(slots=True)
class SubnetText:
    """The devices and cables of a subnet."""

    devices: dict[str, Device] = field(default_factory=dict)
    """The devices by id."""
    cables: dict[DevicePort, CableEnd] = field(default_factory=dict)
    """The cables by each of their ends."""
    hosts: dict[int, str] = field(default_factory=dict)
    """The id of each host, by its port GUID."""


def read_subnet(file: Path, differences: DifferenceList) -> SubnetText:
    """The devices and cables of a file for ibsim.

    The attributes of a device are above it, its ports below, and an empty line ends it (ibsim,
    README, "Net file format"; with one before its ports ibsim 0.12 does not start).
    """
    reader = _SubnetReader(file, differences)
    for line, text in plain_lines(file, differences):
        if device := DEVICE.fullmatch(text):
            reader.device(device, line)
        elif cable := CABLE.match(text):
            reader.cable(cable, text, line)
        elif (attribute := ATTRIBUTE.fullmatch(text)) and attribute[1] not in reader.attributes:
            reader.attributes[attribute[1]] = TextValue(attribute[2], line)
        elif not text:
            reader.end_device(line)
        elif text[0] != "#":
            differences.add_unread(file, line, text)
    for name, value in reader.attributes.items():
        differences.add(file, value.line, f"{name}={value.text}", "a device below it")
    return reader.subnet


@dataclass(slots=True)
class _SubnetReader:
    """Reads a subnet device by device.

    `attributes` are those of the next device. `device` compares them with it and begins the device,
    `cable` adds a cable to it, and `end_device` ends it.
    """

    file: Path
    """The file."""
    differences: DifferenceList
    """Collects lines that make no sense."""
    subnet: SubnetText = field(default_factory=SubnetText)
    """What has been read."""
    current: str = ""
    """The id of the device whose ports are read; "" between two devices."""
    attributes: dict[str, TextValue] = field(default_factory=dict)
    """By name, the attributes of the next device."""

    def device(self, match: re.Match[str], line: int) -> None:
        """Begin a device."""
        kind, ports, self.current, name = match.groups()
        if self.current in self.subnet.devices:
            self.differences.add(self.file, line, f"{self.current} again", "one device of that id")
        if kind == "Ca" and ports != "1":
            self.differences.add(self.file, line, f"host {name} with {ports} ports", "1")
        self.subnet.devices[self.current] = Device(name, int(ports), line)
        self._compare_attributes(kind, line)
        self.attributes = {}

    def cable(self, match: re.Match[str], text: str, line: int) -> None:
        """Enter the cable at a port of the current device."""
        port = int(match[1])
        near = DevicePort(self.current, port)
        if near in self.subnet.cables:
            self.differences.add(self.file, line, f"port {port} again", "one cable a port")
        if not self.current or not 0 < port <= self.subnet.devices[self.current].ports:
            stated = f"port {port} of {self.current}"
            self.differences.add(self.file, line, stated, "a port that it has")
        far = DevicePort(match[3], int(match[4]))
        self.subnet.cables[near] = CableEnd(far, line)
        port_guid, is_host = match[2], self.current.startswith("H")
        if bool(port_guid) != is_host:
            self.differences.add_unread(self.file, line, text)
        if port_guid:
            self.subnet.hosts[int(port_guid, 16)] = self.current

    def end_device(self, line: int) -> None:
        """End the current device, at an empty line."""
        self.current = ""
        if self.attributes:
            expected = "the device of the attributes above it"
            self.differences.add(self.file, line, "an empty line", expected)

    def _compare_attributes(self, kind: str, line: int) -> None:
        """Compare the attributes of the current device with its id: its GUIDs, and no vendor."""
        digits = self.current.partition("-")[2]
        expected = {"vendid": "0x0", "devid": "0x0", "sysimgguid": f"0x{digits}"}
        if kind == "Switch":
            expected["switchguid"] = f"0x{digits}({digits.lstrip('0')})"
        else:
            expected["caguid"] = f"0x{digits}"
        for name in expected.keys() | self.attributes.keys():
            value = self.attributes.get(name, TextValue(ABSENT.text, line))
            if value.text != expected.get(name):
                stated = f"{name}={value.text}"
                self.differences.add(self.file, value.line, stated, expected.get(name, "none such"))
