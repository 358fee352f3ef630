"""What readers of the management API cost: echo replies and repairs, with and without them.

As root: `polarfab controller` and stand-in switches are in a network namespace of their own. Prints
a line of JSON a step. Readers are processes of their own, and so are those who ask for echo
replies: in one interpreter with the switches they would wait for these. A bare server is asked at
the same time, as its replies show what the machine's other work does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import click
import numpy as np

from benchmarks.bare_server import BareServer
from benchmarks.echo_probe import EchoProbe
from benchmarks.many_switches import ADDRESS, AT_MOST, LINKS, URL, Controller, repairs
from benchmarks.moves import compiled
from benchmarks.timing import q_option
from compilers.tables.folders.build_folder import load
from tests.controller.makers import own_network
from tests.controller.stand_ins import StandIns

PATH = "/api/state"
"""What is read."""
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
"""A request for it."""
BARE = ADDRESS[0], ADDRESS[1] + 1
"""Where the bare server listens."""
LAST = 19
"""The priority of readers, which stand for other machines."""
SPAWN = multiprocessing.get_context("spawn")
"""Starts processes that share nothing with this one."""


@click.command("readers")
@q_option(7)
@click.option("--pipelined", default=60_000, help="Requests that one client sends at once.")
@click.option("--clients", default=8, help="Clients that read the state all the time.")
def command(q: int, pipelined: int, clients: int) -> None:
    """Time echo replies and repairs while clients read the API; prints JSON."""
    with TemporaryDirectory() as folder:
        for step in steps(Path(folder), q, pipelined, clients):
            print(json.dumps(step), flush=True)


def steps(folder: Path, q: int, pipelined: int, clients: int) -> Iterator[dict[str, Any]]:
    """Echo replies and repairs without readers, with a flood, and with ordinary readers."""
    build = compiled(folder / "fabric", q, "{balance: minimal}")
    with own_network():
        network, controller = StandIns(load(build), ADDRESS), Controller(folder, build)
        bare = SPAWN.Process(target=serve_bare, daemon=True)
        bare.start()
        try:
            network.serve(lambda: controller.status().get("complete"), AT_MOST)
            for what, readers in (
                ("nobody reads", []),
                (f"{pipelined:,} requests at once", [(flood, pipelined)]),
                (f"{clients} clients", [(read, 0)] * clients),
                ("nobody reads any more", []),
            ):
                with reading(readers) as read_bytes:
                    yield {"step": what} | _measured(network, controller) | read_bytes()
        finally:
            bare.kill()
            controller.kill()
            network.close()


def serve_bare() -> None:
    """A server that answers echo requests, and does nothing else."""
    BareServer(BARE, {0: []}).push(AT_MOST)


def _probe(address: tuple[str, int], pipe: Any) -> None:
    """Ask for echo replies until the pipe has something, and send the seconds that they took."""
    with EchoProbe(address, AT_MOST, lambda: pipe.send(None)) as probe:
        pipe.recv()
    pipe.send(probe.waits)


@contextmanager
def probed() -> Iterator[dict[str, list[float]]]:
    """The seconds of echo replies meanwhile, of the controller and of the bare server."""
    waits: dict[str, list[float]] = {}
    pipes: dict[str, Any] = {}
    for name, address in {"echo": ADDRESS, "bare echo": BARE}.items():
        pipes[name], end_of_child = SPAWN.Pipe()
        SPAWN.Process(target=_probe, args=(address, end_of_child), daemon=True).start()
    for pipe in pipes.values():
        pipe.recv()  # it has begun
    yield waits
    for pipe in pipes.values():
        pipe.send(None)
    waits |= {name: pipe.recv() for name, pipe in pipes.items()}


def _measured(network: StandIns, controller: Controller) -> dict[str, Any]:
    """Cut links and mend them, one after the other, while a peer asks for echo replies."""
    links = np.argwhere(network.build.wiring.far >= 0).tolist()
    before = len(repairs(controller))
    with probed() as waits:
        for vertex, link in links[:: len(links) // LINKS][:LINKS]:
            for up in (False, True):
                network.cable(vertex, link, up)
                many = len(repairs(controller)) + 1
                network.serve(lambda n=many: len(repairs(controller)) >= n, AT_MOST)
    seconds = [repair["repair seconds"] for repair in repairs(controller)[before:]]
    return {
        "echo replies": len(waits["echo"]),
        **{
            f"{name} p99, ms": _milliseconds(quantiles(seconds_of, n=100)[98])
            for name, seconds_of in waits.items()
        },
        **{
            f"{name} slowest, ms": _milliseconds(max(seconds_of))
            for name, seconds_of in waits.items()
        },
        "repairs": len(seconds),
        "repair, ms": round(median(seconds) * 1e3),
        "repair slowest, ms": round(max(seconds) * 1e3),
    }


def _milliseconds(seconds: float) -> float:
    """Seconds in milliseconds, rounded."""
    return round(seconds * 1e3, 1)


@contextmanager
def reading(readers: list[tuple[Any, int]]) -> Iterator[Callable[[], dict[str, Any]]]:
    """While these readers read; gives how much they have read."""
    count = SPAWN.Value("q", 0)
    began = [SPAWN.Event() for _ in readers]
    processes = [
        SPAWN.Process(target=reader, args=(how_many, count, ready), daemon=True)
        for (reader, how_many), ready in zip(readers, began, strict=True)
    ]
    for process in processes:
        process.start()
    for ready in began:
        ready.wait()
    start = time.monotonic()

    def read_bytes() -> dict[str, Any]:
        seconds = time.monotonic() - start
        alive = sum(process.is_alive() for process in processes)
        return {"still reading": alive, "MB/s read": round(count.value / 1e6 / seconds, 1)}

    try:
        yield read_bytes
    finally:
        for process in processes:
            process.kill()
            process.join()


def flood(how_many: int, count: Any, ready: Any) -> None:
    """Send so many requests at once, over and over, and read what comes."""
    os.nice(LAST)
    ready.set()
    while True:
        with suppress(OSError), _connection() as client:
            Thread(target=_send, args=(client, how_many), daemon=True).start()
            while data := client.recv(1 << 20):
                with count.get_lock():
                    count.value += len(data)


def _send(client: socket.socket, how_many: int) -> None:
    """Send so many requests at once."""
    with suppress(OSError):
        client.sendall(REQUEST * how_many)


def _connection() -> socket.socket:
    """A connection with the API."""
    host, port = URL.split(":")
    return socket.create_connection((host, int(port)))


def read(_: int, count: Any, ready: Any) -> None:
    """Read the state, over and over."""
    os.nice(LAST)
    ready.set()
    client = HTTPConnection(URL)
    while True:
        client.request("GET", PATH)
        data = client.getresponse().read()
        with count.get_lock():
            count.value += len(data)
