"""Connections that real Open vSwitch deals to ports, counted where they come out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compilers.targets.openflow.hash_shares import LARGEST_ERROR
from mininet_scenarios.ovs.openvswitch import NAMESPACES
from tests.compilers.targets.test_class_groups import buckets_of, shares

pytestmark = pytest.mark.live
SIGMAS = 5
WEIGHTS = [[1] * 14, [1] * 31, [1] * 57]
"""By 128 hash values, by 256 (64 gave a port +45 %), and by highest random weight."""


def test_no_port_gets_a_tenth_more_or_less_than_its_share(tmp_path):
    groups = [buckets_of(weights) for weights in WEIGHTS]
    done = subprocess.run(
        [*NAMESPACES, sys.executable, str(Path(__file__).with_name("live_deals.py")), tmp_path],
        input=json.dumps(groups),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for weights, came in zip(WEIGHTS, json.loads(done.stdout), strict=True):
        flows = sum(came)
        should = np.array(shares(weights)) * flows
        chance = SIGMAS * np.sqrt(should)
        assert (np.abs(np.array(came) - should) <= chance).all(), weights
        equal = flows / len(weights)
        assert (np.abs(np.array(came) - equal) <= LARGEST_ERROR * equal + chance).all(), weights
