"""Topologies: the algebra of every family, behind one small interface."""

from compilers.topologies.polarfly import PolarFly
from compilers.topologies.topology import Family

FAMILIES: dict[str, Family] = {family.name: family for family in (PolarFly(),)}
