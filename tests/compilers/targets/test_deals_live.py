"""Connections that real Open vSwitch deals to ports, counted where they come out."""

import json
from pathlib import Path

import numpy as np
import pytest

from compilers.targets.openflow.hash_shares import LARGEST_ERROR
from tests.compilers.targets.test_class_groups import buckets_of, shares
from tests.polarfab.forked import printed_apart

pytestmark = pytest.mark.live
SIGMAS = 5
WEIGHTS = [[1] * 14, [1] * 31, [1] * 57]
"""By 128 hash values, by 256 (64 gave a port +45 %), and by highest random weight."""


def test_no_port_gets_a_tenth_more_or_less_than_its_share(tmp_path):
    groups = [buckets_of(weights) for weights in WEIGHTS]
    printed = printed_apart(
        Path(__file__).with_name("live_deals.py"), tmp_path, timeout=300, given=json.dumps(groups)
    )
    for weights, came in zip(WEIGHTS, json.loads(printed), strict=True):
        flows = sum(came)
        should = np.array(shares(weights)) * flows
        chance = SIGMAS * np.sqrt(should)
        assert (np.abs(np.array(came) - should) <= chance).all(), weights
        equal = flows / len(weights)
        assert (np.abs(np.array(came) - equal) <= LARGEST_ERROR * equal + chance).all(), weights
