"""`polarfab rehearse`, and what `emulate` does when an engine cannot do something."""

import json

import pytest

FABRIC = "name: lab\ntopology: {{family: polarfly, q: 3}}\ninventory: {}\n{}"


@pytest.fixture
def fabrics(tmp_path, monkeypatch):
    """fabric.yaml, and less.yaml in which a cable is dead, in the working folder."""
    monkeypatch.chdir(tmp_path)
    plain = "generate: {type: copackaged-4x8}\n"
    (tmp_path / "inventory.yaml").write_text(plain)
    (tmp_path / "dead.yaml").write_text(f"{plain}dead_links: [{{a: n7, b: n12}}]\n")
    (tmp_path / "fabric.yaml").write_text(FABRIC.format("inventory.yaml", ""))
    (tmp_path / "less.yaml").write_text(FABRIC.format("dead.yaml", ""))
    return tmp_path


def test_a_move_that_loses_nothing(fabrics, polarfab):
    ends, report = ("less.yaml", "--from", "fabric.yaml"), fabrics / "out"
    code, out, err = polarfab("rehearse", *ends, "--engine", "model", "--report", report)
    assert (code, err.count("reported in")) == (0, 3)
    assert "4 rounds, 7 states of 156 pairs of switches; 1 cable goes, which 12 pairs" in out
    assert "probe, build: less.yaml: at most 0 lost a pair" in out
    assert "new build, every pair: delivered" in out
    assert "lab passed in" in err
    again = "polarfab rehearse less.yaml --from fabric.yaml --interval 0.1 --pairs 0 --engine model"
    assert again in (report / "report.html").read_text()


def test_a_long_path_is_taken_and_one_of_two_lines_is_not(fabrics, polarfab):
    for name, good in (("a" * 150, True), ("two\nlines", False)):
        (fabrics / name).mkdir()
        (fabrics / name / "inventory.yaml").write_text("generate: {type: copackaged-4x8}\n")
        (fabrics / name / "f.yaml").write_text(FABRIC.format("inventory.yaml", ""))
        new = fabrics / name / "f.yaml"
        code, _, err = polarfab("rehearse", new, "--from", "fabric.yaml", "--engine", "model")
        assert code == (0 if good else 2), err
        assert good or "BUILD: required a path of 1 to 4,096 printable characters" in err


@pytest.mark.usefixtures("fabrics")
def test_json(polarfab):
    ends = "less.yaml", "--from", "fabric.yaml"
    code, out, _ = polarfab("rehearse", *ends, "--engine", "model", "--json", "--interval", "0.05")
    found = json.loads(out)
    assert (code, found["engine"], found["passed"], len(found["moves_to"])) == (0, "model", True, 1)
    assert [event["lost"] for event in found["timeline"]] == [0]
    assert found["probe"]["slowed"] == ["every 0.05 s: 3,120 packets a second, where 2,000 go"]
    assert found["checks"][0]["name"].startswith("plan to ")


def test_build_folders_must_be_verified(fabrics, polarfab):
    for name in ("fabric", "less"):
        done = polarfab("compile", fabrics / f"{name}.yaml", "-o", fabrics / name)
        assert done[0] == 0
    ends = fabrics / "fabric", "--from", fabrics / "less"
    assert polarfab("rehearse", *ends, "--engine", "model")[0] == 0
    (fabrics / "fabric" / "verified.json").unlink()
    code, _, err = polarfab("rehearse", *ends, "--engine", "model")
    assert (code, "verif" in err) == (2, True)
    assert polarfab("rehearse", *ends, "--engine", "model", "--unverified")[0] == 0


def test_renumbered_hosts_cannot_be_rehearsed(fabrics, polarfab):
    (fabrics / "three.yaml").write_text(FABRIC.format("inventory.yaml", "hosts_per_node: 3\n"))
    code, _, err = polarfab("rehearse", "three.yaml", "--from", "fabric.yaml", "--engine", "model")
    words = "one without host h0 at its place with its address (13 in all)"
    assert (code, words in err) == (2, True)


@pytest.mark.parametrize(("hosts", "checked"), [(1, 156), (0, 0)])
def test_hosts_that_go_are_promised_nothing(fabrics, polarfab, hosts, checked):
    for name, number in (("two", 2), ("new", hosts)):
        text = FABRIC.format("inventory.yaml", f"hosts_per_node: {number}\n")
        (fabrics / f"{name}.yaml").write_text(text)
    assert polarfab("compile", "two.yaml", "-o", "two")[0] == 0
    assert polarfab("compile", "new.yaml", "-o", "new", "--from", "two")[0] == 0
    ends = ("new", "--from", "two")
    code, out, _ = polarfab("rehearse", *ends, "--engine", "model", "--interval", "0.5", "--json")
    found = json.loads(out)
    required = {check["name"]: check["required"] for check in found["checks"]}
    assert (code, found["passed"]) == (0, True)
    assert required["new build, every pair: delivered"] == checked


@pytest.mark.live
def test_auto_is_the_model_where_mininet_lacks_an_ability(tmp_path, polarfab):
    file = tmp_path / "scenario.yaml"
    fabric = "fabric: {name: lab, topology: {family: polarfly, q: 3}}\n"
    file.write_text(f"name: x\n{fabric}expect: {{paths: [[0, 4, 2]]}}\n")
    code, out, _ = polarfab("emulate", file)
    assert code == 0
    assert "Mininet cannot do expect.paths, so no packet is sent" in out
    assert "x: polarfly q=3 on model" in out
    code, _, err = polarfab("emulate", file, "--engine", "mininet")
    assert (code, "use --engine ovs-fabric or model" in err) == (2, True)
