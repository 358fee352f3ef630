"""Small fabrics, compiled once."""

from functools import cache

import pytest

from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A function of q, hosts per switch and balance: the PolarFly build, in memory."""
    folder = tmp_path_factory.mktemp("fabrics")

    @cache
    def build(q, hosts=1, balance="minimal"):
        file = folder / f"q{q}-{hosts}-{balance}.yaml"
        topology = f"topology: {{family: polarfly, q: {q}}}"
        routing = f"routing: {{balance: {balance}}}"
        file.write_text(f"name: lab\n{topology}\nhosts_per_node: {hosts}\n{routing}\n")
        return compile_fabric(load_fabric(file))

    return build
