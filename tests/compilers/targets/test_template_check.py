"""Templates of the user's own: every mistake before a file is written; documented variables."""

import re
from dataclasses import fields, replace

import pytest

from compilers.spec.target_names import SHIPPED
from compilers.targets.node_facts import NodeFacts, names_by_file
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.targets.makers import fabric

MADE_UP = {"opensm": {"guids": "made-up"}}
BUILD = replace(fabric(q=2), identity="0123456789abcdef")


def own(folder, **files):
    """A folder of templates, by name with __ for / and _ for . before j2."""
    for name, text in files.items():
        path = (
            folder
            / "own"
            / name.replace("__", "/")
            .replace("_j2", ".j2")
            .replace("_cfg", ".cfg")
            .replace("_conf", ".conf")
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
    return folder / "own"


def refused(tmp_path, name="eos", **files):
    """What is said about templates, below their folder; nothing is written."""
    folder = own(tmp_path, **files)
    with pytest.raises(InputError) as error:
        target(name).render(BUILD, tmp_path / "out", folder)
    assert not (tmp_path / "out").exists()
    return str(error.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize("name", SHIPPED)
def test_every_file_gets_the_variables_that_it_declares(name, tmp_path):
    (tmp_path / "own" / name).mkdir(parents=True)
    for file, known in names_by_file(target(name).files, target(name).whole_fabric).items():
        text = "".join(f"{{{{ {word} is defined }}}} {word}\n" for word in sorted(known))
        (tmp_path / "own" / name / f"{file}.j2").write_text(text)
    target(name).render(BUILD, tmp_path / "out", tmp_path / "own", options=MADE_UP.get(name))
    texts = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    words = {word for text in texts for word in text.split()}
    assert "True" in words
    assert "False" not in words


def test_every_mistake_at_once_with_file_and_line(tmp_path):
    said = refused(
        tmp_path,
        eos__eos_cfg_j2="{{ router.hostname }}\n{{ vlam }}\n{% if zzz is defined %}{% endif %}",
        eos__avd_json_j2="{% for x in y %}",
        eso__eos_cfg_j2="",
        eos__eos_conf_j2="",
        eos__eos_cfg="",
    )
    assert [re.sub(r"required .*, given", "…", line) for line in said] == [
        "eos/avd_json.j2: … eos/avd_json.j2; did you mean eos/avd.json.j2?",
        "eos/eos.cfg: … eos/eos.cfg; did you mean eos/eos.cfg.j2?",
        "eos/eos.conf.j2: … eos/eos.conf.j2; did you mean eos/eos.cfg.j2?",
        "eso/eos.cfg.j2: … eso/eos.cfg.j2; did you mean eos/eos.cfg.j2?",
        "eos/eos.cfg.j2:2: … vlam; did you mean vlan?",
        "eos/eos.cfg.j2:3: … zzz; see Options and variables of targets in the manual",
    ]


@pytest.mark.parametrize(
    ("text", "line", "given"),
    [
        ("a\n{% for x in y %}", 2, "Unexpected end of template"),
        ("a\n{{ identity | shout }}", 2, "No filter named 'shout'"),
        ("a\nb\n{% include 'eos/none.j2' %}", 3, "eos/none.j2"),
        (b"\xff", 0, "can't decode byte"),
    ],
)
def test_templates_that_are_none(tmp_path, text, line, given):
    (said,) = refused(tmp_path, eos__eos_cfg_j2=text)
    assert said.startswith(f"eos/eos.cfg.j2:{line}: " if line else "eos/eos.cfg.j2: ")
    assert given in said


def test_a_folder_without_any_for_the_target(tmp_path):
    (said,) = refused(tmp_path, linux__load_sh_j2="")
    assert said.endswith(
        "templates of target eos: eos/avd.json.j2, eos/base.j2, eos/bgp.j2, eos/eos.cfg.j2, "
        "given none of them"
    )


def test_what_is_right_is_taken(tmp_path):
    """Loops, macros, imports, names set before an include, files of other targets, notes."""
    folder = own(
        tmp_path,
        eos__eos_cfg_j2="{% from 'common/macros.j2' import twice %}{% set mine = vlan %}"
        "{% for link in router.links %}{{ loop.index }}{{ range(2) | list }}{% endfor %}"
        "{% include 'eos/part.j2' %} {{ twice(3) }}",
        eos__part_j2="{{ mine }} {{ identity }}",
        common__macros_j2="{% macro twice(n) %}{{ 2 * n }}{% endmacro %}",
        linux__load_sh_j2="{{ anything }}",
        README="notes",
        eos__README="more",
    )
    target("eos").render(BUILD, tmp_path / "out", folder)
    assert (tmp_path / "out" / "0" / "eos.cfg").read_text().endswith(f"2 {BUILD.identity} 6")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("\n{{ router.colour }}", "has no attribute 'colour'"),
        ("\n{{ 1 / 0 }}", "division by zero"),
        ("\n{{ vars.nope }}", "'vars' has no attribute 'nope', for switch 0$"),
        ("\n{% include 'eos/eos.cfg.j2' %}", "one that includes itself"),
    ],
)
def test_what_only_values_show_has_its_line_too(tmp_path, text, given):
    folder = own(tmp_path, eos__eos_cfg_j2=text)
    with pytest.raises(InputError) as error:
        target("eos").render(BUILD, tmp_path / "out", folder, only=[0])
    (problem,) = error.value.problems
    assert (problem.file, problem.line) == (str(folder / "eos" / "eos.cfg.j2"), 2)
    assert re.search(given, problem.given)
    assert not list((tmp_path / "out").rglob(".*.polarfab"))


def test_files_of_the_users_own_are_written_for_every_switch(tmp_path):
    """Another file with every fact of a node; what it includes is no file, nor what is near one."""
    folder = own(
        tmp_path,
        eos__motd_j2="{% include 'eos/line.j2' %}{% for host in facts.hosts %} {{ host.name }}"
        "{% endfor %} {{ router.hostname }}\n",
        eos__line_j2="{{ facts.name }} {{ facts.kind }} of {{ fabric.name }}",
    )
    written = target("eos").render(BUILD, tmp_path / "out", folder)
    assert written.files == 7 * 3
    assert {path.name for path in (tmp_path / "out" / "3").iterdir()} == {
        "eos.cfg",
        "avd.json",
        "motd",
    }
    kind = BUILD.topology.kinds[BUILD.topology.kind[3]]
    said = (tmp_path / "out" / "3" / "motd").read_text()
    assert said == f"3 {kind} of {BUILD.name} {BUILD.wiring.host_names[3]} sw-3\n"


def test_a_file_of_the_users_own_for_the_whole_fabric(tmp_path):
    folder = own(
        tmp_path,
        ansible__cables_j2="{% for node in fabric.nodes %}{% for link in node.links %}"
        "{{ node.name }}:{{ link.port }} {{ link.far }}:{{ link.far_port }}\n"
        "{% endfor %}{% endfor %}",
    )
    target("ansible").render(BUILD, tmp_path / "out", folder)
    ends = [line.split() for line in (tmp_path / "out" / "cables").read_text().splitlines()]
    assert sorted(ends) == sorted([far, near] for near, far in ends)
    assert len(ends) == BUILD.topology.graph.degrees.sum()


def test_facts_of_a_switch_are_none_of_the_whole_fabric(tmp_path):
    (said,) = refused(tmp_path, "ansible", ansible__notes_j2="{{ facts.name }}")
    assert "notes.j2:1: required one of the variables fabric, identity, name, plays" in said


def test_every_fact_is_there(tmp_path):
    text = " ".join(f"{{{{ facts.{field.name} }}}}" for field in fields(NodeFacts))
    folder = own(tmp_path, linux__everything_j2=text)
    target("linux").render(BUILD, tmp_path / "out", folder)
    said = (tmp_path / "out" / "0" / "everything").read_text()
    kind = BUILD.topology.kinds[BUILD.topology.kind[0]]
    assert said.startswith(f"0 0 {kind} generated {1:016x} ")
    assert "(NodeLink(number=1, port='" in said
