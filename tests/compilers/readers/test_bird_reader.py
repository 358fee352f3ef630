"""What bird.conf has to say: a word that is missing or another is a difference."""

import re

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.targets.target_lookup import target
from tests.compilers.routed import agreed

SPEC = """name: lab
topology: {family: polarstar, supernode: complete, q: 2, degree: 1}
routing: {balance: minimal}
addressing: {ipv6: "fd00::/48"}
"""
CHANGES = {
    "static": {
        "another neighbour": (r"via fe80::\w+%", "via fe80::99%"),
        "another port": (r"%'eth1'", "%'eth2'"),
        "no BFD": (r" bfd;", ";"),
        "no BFD of a link": (r"  neighbor fe80.*\n", ""),
        "a neighbour of BFD": (r"neighbor fe80::\w+ dev", "neighbor fg80::1 dev"),
        "own prefixes in the kernel": (r"    export where .*", "    export all;"),
        "a prefix that leads elsewhere": (r"  route 10\S+ unreachable;\n", ""),
        "no id": (r"router id \S+;\n", ""),
        "a section that does not end": (r"\n}\nprotocol static", "\nprotocol static"),
    },
    "bgp": {
        "another neighbour": (r"neighbor fe80::\w+%", "neighbor fe80::99%"),
        "another number": (r"( as 42\d+)\d;", r"\g<1>77;"),
        "no limit of paths": (r"  if bgp_path.*\n", ""),
        "what is preferred comes last": (
            r"(  if net ~ 'via-.*\n)(  if net ~ 'fabric-.*\n)",
            r"\2\1",
        ),
        "what is preferred comes behind": (r"\{ bgp_med = 0;", "{ bgp_med = 2;"),
        "everything is taken": (r"  reject;", "  accept;"),
        "no filter": (r"    import filter 'via-.*\n", ""),
        "another list": (r"(= \[\n  )10[\d./]+", r"\g<1>10.0.0.4/30"),
        "MED of one neighbour only": (r"  med metric on;\n", ""),
        "no own prefix": (r"(protocol static 'own-ipv4' \{\n  ipv4;\n)  route.*\n", r"\1"),
        "no IPv4": (r"    extended next hop on;\n", ""),
        "no BFD": (r"  bfd on;\n", ""),
    },
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bird")
    (folder / "fabric.yaml").write_text(SPEC)
    build = compile_fabric(load_fabric(folder / "fabric.yaml"))
    for routing in CHANGES:
        target("bird").render(agreed(build, {"routing": routing}), folder / routing)
    return build, folder


@pytest.mark.parametrize("routing", CHANGES)
def test_every_word_counts(routing, written):
    build, folder = written
    build = agreed(build, {"routing": routing})
    files = sorted((folder / routing).glob("*/bird.conf"))
    for what, (pattern, other) in CHANGES[routing].items():
        file = next(one for one in files if re.search(pattern, one.read_text()))
        before = file.read_text()
        file.write_text(re.sub(pattern, other, before, count=1))
        found = 0
        if routing == "static":  # quickly, unless only its neighbours' files tell
            switch = build.wiring.names.index(file.parent.name)
            one = target("bird").check_emitted(build, folder / routing, only={switch})
            found = one.differences
        found = found or target("bird").check_emitted(build, folder / routing).differences
        file.write_text(before)
        assert found, what
    assert not target("bird").check_emitted(build, folder / routing).differences
