"""A name has one target."""

from types import SimpleNamespace

import pytest

from compilers.targets import target_lookup
from inventory.problems import InputError


def test_a_name_of_ours_that_a_package_takes_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(dist=SimpleNamespace(name="other-eos"))
    monkeypatch.setattr(target_lookup, "registered", lambda _: {"eos": (entry,)})
    with pytest.raises(InputError, match="those of polarfab itself and of package other-eos"):
        target_lookup.target("eos")
