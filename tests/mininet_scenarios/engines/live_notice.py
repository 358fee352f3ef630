"""Run in namespaces of its own by test_engine_failures_live.py: cables that are noticed late.

live_notice.py BUILD LOGS: a link of a build with fast reroute goes down and comes up several times.
The kernel changes its interfaces only `LATE` seconds after the event, as on a machine with too much
work. Prints JSON: by event, the pairs whose packets took another way than the prediction says,
although `settle` had returned.
"""

import json
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import numpy as np

from mininet_scenarios.engines import network
from mininet_scenarios.engines.mininet_child import MininetChild
from mininet_scenarios.scenario.engine import Setup
from mininet_scenarios.scenario.outage import Outage, PhysicalChange
from mininet_scenarios.verdict.predict import Prediction

EVENTS = 4
LATE = 1.5


def late(batch):
    return lambda lines: threading.Timer(LATE, batch, (lines,)).start()


def main(build, logs):
    setup = Setup((), (Path(build),), Path(logs), hosts=1, framework="ryu", unverified=True)
    inside = MininetChild(setup, lambda *_: None)
    inside.start()
    inside.settle(120)
    inside.controller.kill()
    names = inside.build.wiring.names
    every_pair = 1 - np.eye(len(names), dtype=np.int64)
    wrong, outage = [], Outage()
    for number in range(EVENTS):
        event = PhysicalChange(((names[0], names[1]),), (), bool(number % 2))
        with patch.object(network, "batch", late(network.batch)):
            inside.apply(event)
        inside.settle(120)
        outage = outage.after(event)
        hops = inside.exchange(every_pair, 4).longest
        prediction = Prediction.of(inside.build).under(outage, Outage())
        right = (hops >= prediction.fewest_hops) & (hops <= prediction.most_hops)
        wrong.append(int(np.count_nonzero(every_pair & ~right)))
    return wrong


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
