"""Small fabrics, compiled once."""

from functools import cache

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A function of q and hosts per switch: the PolarFly build, in memory."""
    folder = tmp_path_factory.mktemp("fabrics")

    @cache
    def build(q, hosts=1):
        file = folder / f"q{q}-{hosts}.yaml"
        topology = f"topology: {{family: polarfly, q: {q}}}"
        file.write_text(f"name: lab\n{topology}\nhosts_per_node: {hosts}\n")
        return compile_fabric(load_fabric(file))

    return build
