"""MSCCL XML, run step by step: every rank ends with the sum of all, none waits for ever."""

from collections import deque
from xml.etree.ElementTree import fromstring

import pytest

import polarfab
from extensions.clusters.trees import trees as trees_of
from extensions.clusters.trees.msccl_xml import msccl_xml
from inventory.problems import InputError

OF_STEPS = {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}


def fabric(hosts, family="polarfly", **parameters):
    topology = {"family": family, **(parameters or {"q": 3})}
    spec = {"name": "lab", "topology": topology, "hosts_per_node": hosts}
    return polarfab.Fabric.from_spec(spec).compile()


def run(algorithm):
    """The vectors of all ranks; step by step, each thread block on its own."""
    gpus = {int(gpu.get("id")): gpu for gpu in algorithm}
    chunks = int(algorithm.get("nchunksperloop"))
    memory = {rank: [{rank: 1} for _ in range(chunks)] for rank in gpus}
    wires = {}
    blocks = [(rank, tb) for rank, gpu in gpus.items() for tb in gpu]
    place = {(rank, int(tb.get("id"))): 0 for rank, tb in blocks}
    moved = True
    while moved:
        moved = False
        for rank, tb in blocks:
            own = rank, int(tb.get("id"))
            while place[own] < len(tb):
                step = tb[place[own]]
                after = rank, int(step.get("depid"))
                if after[1] >= 0 and place[after] <= int(step.get("deps")):
                    break
                chunk = int(step.get("srcoff"))
                channel = tb.get("chan")
                if step.get("type") == "s":
                    peer = rank, int(tb.get("send")), channel
                    wires.setdefault(peer, deque()).append(dict(memory[rank][chunk]))
                else:
                    wire = wires.get((int(tb.get("recv")), rank, channel))
                    if not wire:
                        break
                    got = wire.popleft()
                    if step.get("type") == "rrc":
                        before = memory[rank][chunk]
                        got = {k: got.get(k, 0) + before.get(k, 0) for k in got | before}
                    memory[rank][chunk] = got
                place[own] += 1
                moved = True
    assert all(place[rank, int(tb.get("id"))] == len(tb) for rank, tb in blocks), "a rank waits"
    assert not any(wires.values())
    return memory


@pytest.mark.parametrize("kind", ["disjoint", "low-depth"])
@pytest.mark.parametrize("hosts", [1, 3])
def test_every_rank_ends_with_the_sum_of_all(hosts, kind):
    algorithm = fromstring(msccl_xml(trees_of(fabric(hosts), kind)))  # noqa: S314
    ranks = 13 * hosts
    assert int(algorithm.get("ngpus")) == len(algorithm) == ranks
    everyone = dict.fromkeys(range(ranks), 1)
    assert all(vector == everyone for chunks in run(algorithm).values() for vector in chunks)


def test_the_form_of_msccl_tools():
    """As `ir_to_xml` of microsoft/msccl-tools writes it, for an allreduce in place."""
    algorithm = fromstring(msccl_xml(trees_of(fabric(2))))  # noqa: S314
    assert algorithm.attrib == {
        "name": "lab-disjoint",
        "proto": "Simple",
        "nchannels": "2",
        "nchunksperloop": "2",
        "ngpus": "26",
        "coll": "allreduce",
        "inplace": "1",
        "minBytes": "0",
        "maxBytes": "1099511627776",
    }
    for gpu in algorithm:
        assert set(gpu.attrib) == {"id", "i_chunks", "o_chunks", "s_chunks"}
        assert [int(tb.get("id")) for tb in gpu] == list(range(len(gpu)))
        peers = [(tb.get("send"), tb.get("chan")) for tb in gpu]
        assert len(set(peers)) == len(peers), "one thread block a peer and channel"
        waited = {(s.get("depid"), s.get("deps")) for tb in gpu for s in tb}
        for tb in gpu:
            assert set(tb.attrib) == {"id", "send", "recv", "chan"}
            for number, step in enumerate(tb):
                assert set(step.attrib) == OF_STEPS
                assert step.get("s") == str(number)
                has = (tb.get("id"), step.get("s")) in waited
                assert step.get("hasdep") == str(int(has))


def test_what_the_runtime_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"33 and 33|2, 35 and|given 2, 3\d and"):
        msccl_xml(trees_of(fabric(33)))


def test_ranks_need_hosts_and_whole_trees():
    with pytest.raises(InputError, match="required a host on every switch"):
        msccl_xml(trees_of(fabric(1, "oft", q=2)))
    with pytest.raises(InputError, match="required trees that reach every switch"):
        msccl_xml(trees_of(fabric(1), root="0", members=["3"]))
    with pytest.raises(InputError, match="required trees that reach every switch"):
        msccl_xml(trees_of(fabric(1), fail=["3"]))
