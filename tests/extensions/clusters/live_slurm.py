"""A real slurmctld that has read a topology.conf, and what it makes of it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until

CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
StateSaveLocation={folder}
SlurmctldPidFile={folder}/pid
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
CommunicationParameters=NoCtldInAddrAny
"""
SBIN = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


@contextmanager
def slurmctld(folder: Path, topology: Path, hosts: Sequence[str]) -> Iterator[dict[str, str]]:
    """Have it read the tree; gives `SLURM_CONF` for scontrol. It listens on the loopback only."""
    folder.mkdir()
    shutil.copy(topology, folder / "topology.conf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    head = CONFIGURATION.format(name=socket.gethostname(), port=port, folder=folder)
    nodes = [
        f"NodeName={host} NodeAddr=127.0.0.1 Port={port + 1 + i}\n" for i, host in enumerate(hosts)
    ]
    (folder / "slurm.conf").write_text(
        "".join([head, *nodes, "PartitionName=all Nodes=ALL Default=YES\n"])
    )
    program = shutil.which("slurmctld", path=SBIN) or "slurmctld"
    words = [program, "-D", "-f", str(folder / "slurm.conf")]
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(words, stdout=log, stderr=log)
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    try:
        until(lambda: running.poll() is not None or _answers(environment), "slurmctld")
        assert running.poll() is None, (folder / "log").read_text()
        yield environment
    finally:
        running.kill()
        running.wait()


def scontrol(environment: dict[str, str], *words: str) -> str:
    """What `scontrol` prints."""
    done = subprocess.run(["scontrol", *words], env=environment, capture_output=True, text=True)
    return done.stdout


def _answers(environment: dict[str, str]) -> bool:
    return scontrol(environment, "ping").rstrip().endswith("is UP")


def tree(environment: dict[str, str]) -> dict[str, tuple[int, str, str]]:
    """Level, nodes and switches below of each switch, as slurmctld has them."""
    found = {}
    for line in scontrol(environment, "show", "topology").splitlines():
        word = dict(re.findall(r"(\w+)=(\S+)", line))
        found[word["SwitchName"]] = (int(word["Level"]), word["Nodes"], word.get("Switches", ""))
    return found


def expanded(environment: dict[str, str], hostlist: str) -> list[str]:
    """The names of a hostlist, by Slurm."""
    return scontrol(environment, "show", "hostnames", hostlist).split()
