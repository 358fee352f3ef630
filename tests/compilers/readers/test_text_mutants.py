"""Text mutants: what `verify --emitted` passes has to mean what was rendered.

Each mutant is a text with a line deleted, doubled, moved, swapped, or a token altered. Those that
are passed are judged: by the real kernel, FRR and Open vSwitch, elsewhere by the devices' documents
(`device_meaning`). `BENIGN` has those that a device takes for another text and that do no harm.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from compilers.targets.target_lookup import target
from tests.compilers.readers.device_meaning import MEANINGS
from tests.compilers.readers.emitted import fabric, write
from tests.compilers.readers.text_mutants import mutants
from tests.compilers.routed import with_words
from tests.polarfab.forked import printed_apart

BGP = {"routing": "bgp", "bfd": "on"}
CASES = {
    "eos": ("spread, two hosts", {}, ("eos.cfg", "avd.json")),
    "eos bgp": ("minimal", BGP, ("eos.cfg",)),
    "nxos": ("spread, two hosts", {}, ("nxos.cfg",)),
    "nxos bgp": ("minimal", BGP, ("nxos.cfg",)),
    "junos": ("spread, two hosts", {}, ("junos.set",)),
    "junos bgp": ("minimal", BGP, ("junos.set",)),
    "srlinux": ("two hosts", {}, ("srlinux.json",)),
    "srlinux bgp": ("minimal", BGP, ("srlinux.json",)),
    "nvue": ("two hosts", {}, ("startup.yaml",)),
    "sonic": ("spread, two hosts", {}, ("config_db.json",)),
    "opensm": (
        "two hosts",
        {"guids": "made-up"},
        (
            *("opensm.conf", "qos-policy.conf", "fabric.net", "fabric.topo"),
            *("hosts.env", "lfts.txt", "switch_5.ibnl"),
        ),
    ),
    "linux scripts": ("repaired", {}, ("load.sh", "sysctl.conf", "polarfab.service")),
    "frr scripts": ("repaired", {}, ("load.sh", "sysctl.conf", "polarfab.service")),
}
BATCHES = "links.batch", "addresses.batch", "rules.batch", "routes.batch"
LIVE = {
    "linux": ("spread, repaired", {}, BATCHES, "linux"),
    "sonic frr": ("spread, two hosts", {}, ("frr.conf",), "frr"),
    "sonic bgp": ("minimal", BGP, ("frr.conf",), "frr"),
    "frr": ("spread, repaired", {}, ("frr.conf",), "frr"),
    "frr bgp": ("minimal", BGP, ("frr.conf",), "frr"),
    "ovs": ("spread, repaired", {}, ("flows.txt", "groups.txt"), "ovs"),
    "srv6": ("spread", {}, ("srv6.batch", "srv6-sysctl.conf"), "srv6"),
    "srv6 hosts": ("spread", {}, ("host.batch", "host-sysctl.conf", "load.sh"), "srv6"),
    "opensm": (
        *("two hosts", {"guids": "made-up"}),
        *(("opensm.conf", "qos-policy.conf", "lfts.txt", "fabric.net"), "opensm"),
    ),
}
BENIGN = (
    ("frr.*", "delete", r" description hosts", "", "a description"),
    ("nxos|eos", "delete", r" +name hosts", "", "the name of a VLAN"),
    ("nxos", "delete", r" +description hosts", "", "a description"),
    ("junos.*", "delete", r"set apply-macro polarfab build ", "", "a note for people"),
    ("junos", "delete", r"set interfaces irb unit 2 description hosts", "", "a description"),
    ("opensm", "alter", r"qos_sl2vl 0,1,", r"(?<=0,1,).*", "the lane of a level that no pair has"),
    ("opensm", "alter", r"qos_vlarb_low ", r":[1-9]\d*", "another weight: every lane has one"),
    (
        ".* bgp",
        "alter",
        r".*router-id",
        r"\d[\d.]+\d",
        "breaks ties, and the paths worked out are the same",
    ),
    (".* bgp", "alter", r" +set metric [12]", r"\d+$", "the paths worked out are the same"),
    ("junos bgp", "alter", r"set .* then metric [12]", r"\d+$", "the same paths are worked out"),
    (
        "srlinux bgp",
        "alter",
        r' *"ip-address": ',
        r"[\da-f.:]+(?=\")",
        "next hops that no route leads to, of a neighbour",
    ),
    ("linux", "alter", r"rule add iif ", r"(?<= pref )\d+", "of an interface's only rule"),
    ("linux", "alter", r"route ", r"(?<= metric )\d+", "another in the same order of a prefix"),
    (
        "linux",
        "alter",
        r"route .* metric 4 table 50",
        r"(?<=replace )\S+|(?<=nhid )\d+|(?<=table )\d+",
        "table main has the same last, and it is the last where it is now",
    ),
    ("linux", "delete", r"route .* metric 4 table 50", "", "table main has the same last"),
    (
        "frr",
        "alter",
        r"ip(v6)? route ",
        r"(?<!table)(?<!weight) \d+(?= |$)",
        "a distance, likewise",
    ),
    (
        "frr",
        "alter",
        r"ip(v6)? route .* 4 table 50",
        r"(?<=route )\S+ \S+|(?<=table )\d+",
        "table main has the same last, and it is the last where it is now",
    ),
    ("frr", "delete", r"ip(v6)? route .* 4 table 50", "", "table main has the same last"),
)
"""By target, how it was changed, the line and what alone of it is another: why it does no harm
though a device takes it for another text. Order of ports is compared whole (`switch_check`), so
only what keeps it gets here.
"""


def own_folder(folder, files):
    """That of the switch, of the host or of the subnet whose files these are."""
    places = folder / "2", folder / "hosts" / "h8", folder
    return next(place for place in places if all((place / file).is_file() for file in files))


def changed(name, folder, case, options, files, count, seed):
    """The mutants that are passed, and how many there were; each is (file, mutant)."""
    (build, words), of = with_words(fabric(case), options), target(name.split()[0])
    place = own_folder(folder, files)
    alone = of.name not in ("opensm", "srv6") and options.get("routing") != "bgp"
    passed, total = [], 0
    texts = sorted(((place / file).read_text(), file) for file in files)
    for number, (text, file) in enumerate(sorted(texts, key=lambda each: len(each[0]))):
        path = place / file
        share = max(1, (count - total) // (len(files) - number))
        try:
            for mutant in mutants(text, min(share, 15 * text.count("\n")), seed + number):
                path.write_text(mutant.text)
                total += 1
                more = {"only": {2}} if alone else {}
                report = of.check_emitted(build, folder, words, **more)
                if alone and not report.differences:  # what only its neighbours' files tell
                    report = of.check_emitted(build, folder, words)
                if not report.differences:
                    passed.append((file, mutant))
        finally:
            path.write_text(text)
    return passed, total


def is_benign(name, mutant):
    return any(
        re.fullmatch(of, name)
        and mutant.kind == kind
        and re.match(line, mutant.before)
        and (
            kind == "delete" or re.sub(free, "?", mutant.before) == re.sub(free, "?", mutant.after)
        )
        for of, kind, line, free, _ in BENIGN
    )


def by_documents(name, folder, count, seed):
    case, options, files = CASES[name]
    write(name.split()[0], fabric(case), folder, options)
    place = own_folder(folder, files)
    wanted = {file: MEANINGS[file]((place / file).read_text()) for file in files}
    passed, total = changed(name, folder, case, options, files, count, seed)
    missed = [
        f"{file}: {mutant}"
        for file, mutant in passed
        if MEANINGS[file](mutant.text) != wanted[file] and not is_benign(name, mutant)
    ]
    print(f"{name}: {total} mutants, {total - len(passed)} found, {len(missed)} missed")
    assert not missed, "\n".join(missed)


def by_programs(name, folder, count, seed):
    case, options, files, kind = LIVE[name]
    write(name.split()[0], fabric(case), folder, options)
    passed, total = changed(name, folder, case, options, files, count, seed)
    own, judged = own_folder(folder, files), folder.parent / "judged"
    places = [own]
    for number, (file, mutant) in enumerate(passed):
        place = judged / str(number) / "2"
        shutil.copytree(own, place)
        (place / file).write_text(mutant.text)
        places.append(place)
    script = Path(__file__).with_name("live_texts.py")
    printed = printed_apart(script, kind, *map(str, places), str(own), timeout=1500)
    wanted, *held, again = map(json.loads, printed.splitlines())
    assert isinstance(wanted, list), wanted
    assert wanted == again
    assert kind != "srv6" or not any(wanted[0])
    missed = [
        f"{file}: {mutant}"
        for (file, mutant), state in zip(passed, held, strict=True)
        if state != wanted and not is_benign(name, mutant)
    ]
    print(f"{name}: {total} mutants, {total - len(passed)} found, {len(missed)} missed")
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize("name", CASES)
def test_what_is_passed_means_the_same(name, tmp_path):
    by_documents(name, tmp_path, 4, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_what_is_passed_means_the_same_of_many(name, tmp_path):
    by_documents(name, tmp_path, 320, 1000)


@pytest.mark.live
@pytest.mark.parametrize("name", LIVE)
def test_what_is_passed_is_the_same_to_real_programs(name, tmp_path):
    by_programs(name, tmp_path / "out", 6, 1)


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("name", LIVE)
def test_what_is_passed_is_the_same_to_real_programs_of_many(name, tmp_path):
    by_programs(name, tmp_path / "out", 320, 1000)
