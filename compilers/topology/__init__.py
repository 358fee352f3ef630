"""Topologies: the algebra of every family, behind one small interface."""

from compilers.topology.labelled_graph import Family
from compilers.topology.polarfly import PolarFly
from compilers.topology.polarstar import PolarStar
from compilers.topology.projective import OrthogonalFatTree, ProjectiveNetwork

_ALL: tuple[Family, ...] = (PolarFly(), PolarStar(), ProjectiveNetwork(), OrthogonalFatTree())

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
FAMILIES["demi-pn"] = FAMILIES["polarfly"]
