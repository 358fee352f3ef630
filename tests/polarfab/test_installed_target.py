"""A target of another package: that of docs/targets/index.md, installed as it stands there."""

import json
import re
import tomllib

import pytest

from tests.polarfab.makers import PAGE, install, polarfab


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    blocks = re.findall(r"```\w+ (\S+/\S+|pyproject\.toml)\n(.*?)```", PAGE.read_text(), re.S)
    for name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    install(folder, project["name"], project["entry-points"]["polarfab.targets"])
    return folder


FABRIC = "name: lab\ntopology: {family: polarfly, q: 2}\nsystem: routetable\n"


@pytest.fixture(scope="module")
def build(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "fabric.yaml").write_text(FABRIC)
    code, _, err = polarfab(site, words=("compile", folder / "fabric.yaml", "-o", folder / "a"))
    assert code == 0, err
    return folder / "a"


def test_it_renders(site, build, tmp_path):
    words = "render", build, "--target", "routetable", "-o", tmp_path / "out"
    code, _, err = polarfab(site, words=words)
    assert code == 0, err
    lines = (tmp_path / "out" / "3" / "routes.csv").read_text().splitlines()
    assert lines[0] == "prefix,port of 3"
    assert len(lines) == 1 + 6
    assert all(re.fullmatch(r"10\.0\.0\.\d+/\d+,\S+", line) for line in lines[1:])


def test_its_wheel_has_the_templates(site):
    packed = tomllib.loads((site / "pyproject.toml").read_text())["tool"]["setuptools"]
    templates = set(site.glob("polarfab_routetable/templates/*"))
    globs = packed["package-data"]["polarfab_routetable"]
    assert {
        file for glob in globs for file in (site / "polarfab_routetable").glob(glob)
    } == templates
    assert templates


def test_its_templates_can_be_replaced(site, build, tmp_path):
    own = tmp_path / "own" / "routetable"
    own.mkdir(parents=True)
    (own / "routes.csv.j2").write_text("{{ routes | length }} {{ facts.name }}")
    (own / "more.j2").write_text("{{ heder }}")
    words = ["render", build, "--target", "routetable", "-o", tmp_path / "out"]
    words += ["--templates", tmp_path / "own"]
    code, _, err = polarfab(site, words=words)
    assert (code, err.count("\n")) == (2, 1)
    assert "more.j2:1: required one of the variables fabric, facts, header, routes" in err
    (own / "more.j2").write_text("{{ header }}")
    code, _, err = polarfab(site, words=words)
    assert code == 0, err
    files = {path.name: path.read_text() for path in (tmp_path / "out" / "3").iterdir()}
    assert files == {"routes.csv": "6 3", "more": "True"}


def test_diff_compares_its_files(site, build, tmp_path):
    spec = tmp_path / "fabric.yaml"
    spec.write_text(f"{FABRIC}hosts_per_node: 2\n")
    code, _, err = polarfab(site, words=("compile", spec, "-o", tmp_path / "b"))
    assert code == 0, err
    words = "diff", tmp_path / "b", "--from", build, "--target", "routetable", "--set", "header=no"
    code, out, err = polarfab(site, words=words)
    assert code == 1, err
    assert "--- a/3/routes.csv" in out
    assert "prefix,port" not in out


def test_targets_tells_of_it(site):
    code, out, err = polarfab(site, words=("targets", "routetable", "--json"))
    assert code == 0, err
    facts = json.loads(out)
    assert facts["capabilities"] == ["aggregated routes"]
    assert facts["options"]["header"]["default"] == "yes"
    code, out, _ = polarfab(site, words=("targets", "--json"))
    names = [facts["name"] for facts in json.loads(out)]
    assert code == 0
    assert names == sorted(names)
    assert {"routetable", "eos", "ovs"} <= set(names)


def test_without_the_package_it_is_unknown(build, tmp_path):
    words = "render", build, "--target", "routetable", "-o", tmp_path / "out"
    code, _, err = polarfab(words=words)
    assert code == 2
    assert "--target: required one of ansible, bird, containerlab" in err
    (tmp_path / "fabric.yaml").write_text(FABRIC)
    code, _, err = polarfab(words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b"))
    assert (code, err.count("\n")) == (2, 1)
    assert "fabric.yaml:3: system: required one of bird, eos" in err


def test_it_is_asked_what_it_can_do(site, tmp_path):
    (tmp_path / "fabric.yaml").write_text(f"{FABRIC}routing: {{protect: link}}\n")
    code, _, err = polarfab(site, words=("compile", tmp_path / "fabric.yaml", "-o", tmp_path / "b"))
    assert (code, err.count("\n")) == (2, 1)
    assert "system routetable" in err
    assert "repair in the switch" in err


BROKEN = {
    "gone": ("nowhere_to_be_found:Gone", "ModuleNotFoundError: No module named 'nowhere_to_be"),
    "wrong": ("json:dumps", "json:dumps is no subclass of polarfab.Target"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_package_is_one_message(site, build, tmp_path, name):
    value, said = BROKEN[name]
    install(tmp_path / "site", "broken-things", {name: value})
    words = "render", build, "--target", name, "-o", tmp_path / "out"
    code, _, err = polarfab(tmp_path / "site", site, words=words)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: target {name}: required a target that can be imported")
    assert said in err
    assert "package broken-things" in err
    code, out, err = polarfab(tmp_path / "site", site, words=("targets",))
    assert code == 1
    assert "routetable" in out
    assert said in err


def test_two_of_one_name_are_one_message(site, build, tmp_path):
    install(tmp_path / "site", "other-eos", {"eos": "polarfab_routetable:RouteTable"})
    words = "render", build, "--target", "eos", "-o", tmp_path / "out"
    code, _, err = polarfab(tmp_path / "site", site, words=words)
    assert code == 2
    assert err == (
        "error: target eos: required one installed target of that name, given those of "
        "polarfab itself and of package other-eos; uninstall what you do not need\n"
    )
