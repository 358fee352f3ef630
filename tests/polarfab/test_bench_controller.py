"""The benchmark of the controller on a small fabric: that it measures, not how fast."""

import json
import subprocess

import pytest

from tests.controller.conftest import POLARFAB

pytestmark = [pytest.mark.live, pytest.mark.long]


def test_every_way_is_measured_beside_the_bare_server():
    command = [POLARFAB, "bench", "controller", "--q", "3", "--repeat", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = {push["what"]: push for push in json.loads(done.stdout)}
    bare = found["bare socket server, same bundles"]
    assert bare["ratio"] == 1
    for name in ("ryu", "os-ken"):
        cold, same = found[f"{name}, from nothing"], found[f"{name}, nothing to change"]
        assert (cold["sent"], same["sent"]) == (bare["sent"], 0)
        assert cold["seconds"] > 0
        assert 0 < cold["echo"] < 5, "sooner than the probe of Open vSwitch gives up"
        assert 10 < cold["megabytes"] < 500
