"""Run in namespaces of its own by test_push_rounds_live.py: a push in rounds to real FRR daemons.

live_rounds.py OLD OUT NEW: brings the switches up with the files of an old build in OUT, has every
host ping every other, pushes the new build in rounds, and back; prints what was lost.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from compilers.tables.folders.build_folder import load
from controller.devices.device_push import PushSettings
from polarfab.fabric import Fabric
from polarfab.switches import push
from tests.controller.devices.live_push import Site

INTERVAL = "0.2"


def pings(site):
    """A ping from every host to every other."""
    addressing = load(site.new).addressing
    ends = list(enumerate(site.fabric.hosts))
    words = ["ping", "-q", "-n", "-i", INTERVAL]
    return [
        space.spawn([*words, str(addressing.host(other, 0))], stdout=subprocess.PIPE, text=True)
        for vertex, space in ends
        for other, _ in ends
        if other != vertex
    ]


def lost(running):
    """Packets sent and lost, all pairs together; the last of each may still be on its way."""
    sent = missing = 0
    for ping in running:
        ping.send_signal(signal.SIGINT)
        said = ping.communicate(timeout=60)[0]
        transmitted, received = re.search(
            r"(\d+) packets transmitted, (\d+) received", said
        ).groups()
        sent += int(transmitted)
        missing += max(0, int(transmitted) - int(received) - 1)
    return sent, missing


def main(old, out, new, folder):
    site, seen = Site(old, out, new, "frr", folder), {}
    reach = PushSettings(f"{folder}/reach {{node}}", f"{folder}/etc/{{node}}")
    for word, one, other in (("there", new, old), ("back", old, new)):
        running = pings(site)
        found = push(Fabric.load(one), "frr", reach, unverified=True, old=Fabric.load(other))
        seen[word] = [switch.as_dict() | {"differences": []} for switch in found.switches]
        seen[f"lost {word}"] = lost(running)
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # FRR's daemons are a user of their own
        print(json.dumps(main(*map(Path, sys.argv[1:4]), Path(folder))))
