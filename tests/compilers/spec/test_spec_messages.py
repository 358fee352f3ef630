"""Every message about a wrong fabric.yaml or inventory.yaml, as golden text."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.topology import FAMILIES, families
from inventory.problems import InputError

BAD = runpy.run_path(str(Path(__file__).parent / "bad_fabrics.py"))
JARGON = (
    "pydantic",
    "validat",
    "dict",
    "str ",
    "int ",
    "NoneType",
    "tuple",
    "Traceback",
    "{required}",
)


def message(fabric: str | bytes, inventory: str | None = None) -> str:
    Path("fabric.yaml").write_bytes(fabric if isinstance(fabric, bytes) else fabric.encode())
    if inventory is not None:
        Path("inventory.yaml").write_text(inventory, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        compile_fabric(load_fabric("fabric.yaml"))
    text = str(caught.value)
    assert not [word for word in JARGON if word in text]
    assert all(len(line) < 320 for line in text.splitlines())
    assert all(p.file in ("fabric.yaml", "inventory.yaml") for p in caught.value.problems)
    return text


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and one family, so that a new one changes no message here."""
    monkeypatch.setattr(families, "FAMILIES", {"polarfly": FAMILIES["polarfly"]})
    monkeypatch.chdir(tmp_path)


def test_fabric_messages(golden: Callable[[str, str], None]) -> None:
    texts = [f"[{name}]\n{message(text)}\n" for name, text in BAD["FABRICS"].items()]
    golden("\n".join(texts), "fabric-messages.txt")


def test_inventory_messages(golden: Callable[[str, str], None]) -> None:
    texts = [
        f"[{name}]\n{message(BAD['WITH'], text)}\n" for name, text in BAD["INVENTORIES"].items()
    ]
    golden("\n".join(texts), "inventory-messages.txt")


def test_both_files_in_one_error() -> None:
    text = message(
        "name: lab\ntopology: {family: polarfly, q: 6}\ninventory: inventory.yaml\n",
        "node_types: {leaf: {ports: [{count: 4}]}}\nnodes:\n- {name: a, type: leaf}\n- {name: a}\n",
    )
    assert text.splitlines() == [
        "fabric.yaml:2: topology.q: required a prime power from 2 to 1024, given 6; "
        "the nearest are 5 and 7",
        "inventory.yaml:4: nodes[1].type: required the key type, given nothing; add `type: …`",
    ]


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_no_fabric(name: str) -> None:
    with pytest.raises(InputError) as caught:
        load_fabric(name)
    given = {"missing.yaml": "no such file", ".": "a directory"}[name]
    assert str(caught.value).startswith(f"{name}: required a file to read, given {given}; ")
