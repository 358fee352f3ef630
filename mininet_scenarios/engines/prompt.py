"""Mininet's prompt inside the network, with commands that know the fabric."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import numpy as np
from mininet.cli import CLI
from mininet.log import lg, setLogLevel
from mininet.node import Switch
from numpy.typing import NDArray

from compilers.proof.name_lookup import find_failures, find_switch
from compilers.tables.fib import FAULTS
from inventory.problems import InputError
from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.scenario.outage import Outage, PhysicalChange
from mininet_scenarios.verdict.predict import Prediction

MOST_SHOWN = 10
"""Most switches of a path that are shown, and most links in the list of loads."""
Counters = Callable[[], NDArray[np.int64]]
"""Reads the packets that have left each switch by each port, int64[S, ports + 1]."""


class FabricPrompt(CLI):  # type: ignore[misc]
    """Mininet's prompt until `exit` or the end of input. Hosts are h0, h1, …; switches s0, s1, …"""

    prompt = "polarfab> "
    readlineInited = True  # else it would write a file of history into the user's home

    def __init__(
        self, network: FabricNetwork, counters: Counters, reads: TextIO, repairs: bool
    ) -> None:
        self.build, self.fabric, self.counters = network.build, network.fabric, counters
        self.undamaged = Prediction.of(network.build)
        """The paths by the tables while nothing is down."""
        self.repairs = repairs
        """Whether a controller runs that routes around failures."""
        self.before = counters()
        """The counters when links were last listed by load."""
        for i, host in enumerate(network.hosts):
            host.defaultIntf().ip = network.address(i, 4)
        super().__init__(network.net, stdin=reads, stdout=sys.stdout)

    def do_path(self, line: str) -> None:
        """Path A B: the switches between two nodes or hosts, by the tables and what has failed."""
        words = line.split()
        if len(words) != 2:
            self._say("path A B: two nodes or hosts, by name or vertex")
            return
        prediction = self._prediction()
        source, destination = (find_switch(self.build, word) for word in words)
        hops = int(prediction.first_path_hops[source, destination])
        names = [self.build.wiring.names[v] for v in prediction.path(source, destination)]
        shown = " ".join(names[:MOST_SHOWN]) + (" …" if len(names) > MOST_SHOWN else "")
        if hops < 0:
            self._say(f"{shown}: lost ({FAULTS[hops]})")
        else:
            self._say(f"{shown}: {hops} {'link' if hops == 1 else 'links'}")

    def do_fail(self, line: str) -> None:
        """Fail A-B | A: cut a link, or take power from a switch."""
        self._change(line, up=False)

    def do_heal(self, line: str) -> None:
        """Heal A-B | A: mend a link, or give a switch its power back."""
        self._change(line, up=True)

    def do_load(self, _line: str) -> None:
        """load: the links that carried the most packets since the last time."""
        wiring, counters = self.build.wiring, self.counters()
        sent = counters - self.before
        self.before = counters
        largest_first = np.argsort(-sent, axis=None, kind="stable")[:MOST_SHOWN]
        for switch, port in zip(*np.unravel_index(largest_first, sent.shape), strict=True):
            if count := int(sent[switch, port]):
                far = wiring.names[int(wiring.far[switch, wiring.port[switch] == port][0])]
                self._say(f"{count:>8} {wiring.names[int(switch)]} → {far}")
        self._say(f"{int(sent.sum()):>8} in all")

    def do_sh(self, line: str) -> None:
        """Sh COMMAND: a shell command on this terminal."""
        streams = {"stdin": self.stdin, "stdout": self.stdout, "stderr": self.stdout}
        subprocess.run(["sh", "-c", line], **streams)

    def onecmd(self, line: str) -> bool | None:
        """Run a command. A mistake or an error of Mininet is printed, and the prompt goes on."""
        done: bool | None = None
        try:
            done = super().onecmd(line)
        except InputError as error:
            self._say(str(error))
        except Exception as error:
            self._say(f"{line.split()[0]}: {type(error).__name__}: {error}")
        return done

    def default(self, line: str) -> bool | None:
        """Run a command in a host, or here for a switch, as switches have no shell.

        Names of hosts in it stand for their addresses. Mininet asks ifconfig for these, which a
        machine need not have.
        """
        first, command, _ = self.parseline(line)
        node = self.mn[first] if first in self.mn else None  # noqa: SIM401 (it has no get)
        if isinstance(node, Switch):
            self._say(node.cmd(command).rstrip())
            return None
        words = [self._address_of(word) for word in (command or "").split(" ")]
        done: bool | None = super().default(" ".join((first or "", *words)) if node else line)
        return done

    def _address_of(self, word: str) -> str:
        """The address of the host that a word names; any other word as it is."""
        return (self.mn[word].IP() if word in self.mn else None) or word

    def _change(self, line: str, up: bool) -> None:
        """Change cables or power, and show how many pairs of switches lose packets now."""
        walks = self.undamaged.walks
        elements = find_failures(self.build, line.strip())
        names = self.build.wiring.names
        # An element is a cable or a node that can fail. Cables have the numbers below `count`.
        count = walks.cable_count
        vertices = [element - count for element in elements if element >= count]
        nodes = tuple(names[vertex] for vertex in vertices)
        ends = [walks.link_ends[element] for element in elements if element < count]
        change = PhysicalChange(tuple((names[u], names[v]) for u, v in ends), nodes, up)
        self.fabric.apply_outage(self.fabric.outage.after(change))
        self.fabric.settle()
        prediction = self._prediction()
        powered = self.fabric.outage.up(names) & self.build.topology.endpoints
        pairs = powered[:, None] & powered & ~np.eye(walks.switches, dtype=bool)
        lost = int(np.count_nonzero(pairs & (prediction.fewest_hops < 0)))
        self._say(f"{lost:,} of {int(pairs.sum()):,} pairs of switches lose packets by the tables")

    def _prediction(self) -> Prediction:
        """The paths by the tables under the present outage, after the controller's repairs."""
        outage = self.fabric.outage
        return self.undamaged.under(outage, outage.links_around if self.repairs else Outage())

    def _say(self, text: str) -> None:
        """Write a line to the terminal."""
        self.stdout.write(f"{text}\n")


def run(network: FabricNetwork, counters: Counters, terminal: Path, repairs: bool) -> None:
    """Run the prompt at a terminal until its end.

    Args:
        network: the running network.
        counters: reads how many packets switches have sent.
        terminal: the device of the terminal.
        repairs: whether a controller runs that routes around failures.
    """
    with (
        terminal.open("r", encoding="utf-8") as reads,
        terminal.open("w", encoding="utf-8", buffering=1) as writes,
    ):
        former = sys.stdin, sys.stdout
        sys.stdin, sys.stdout = reads, writes
        lg.handlers[0].setStream(writes)
        setLogLevel("output")
        try:
            FabricPrompt(network, counters, reads, repairs)
        finally:
            sys.stdin, sys.stdout = former
            setLogLevel("error")
