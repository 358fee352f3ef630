"""Topologies: the algebra of every family, behind one small interface."""

from compilers.topologies.polarfly import PolarFly
from compilers.topologies.polarstar import PolarStar
from compilers.topologies.projective import OrthogonalFatTree, ProjectiveNetwork
from compilers.topologies.topology import Family

_ALL: tuple[Family, ...] = (PolarFly(), PolarStar(), ProjectiveNetwork(), OrthogonalFatTree())

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
FAMILIES["demi-pn"] = FAMILIES["polarfly"]
