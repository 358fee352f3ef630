"""Baselines: the families that the papers compare with, routed by search."""

from compilers.topology.baselines.baseline import Baseline, BaselineDesign
from compilers.topology.baselines.bundlefly import Bundlefly
from compilers.topology.baselines.dragonfly import Dragonfly
from compilers.topology.baselines.dring import DRing
from compilers.topology.baselines.fattree import FatTree
from compilers.topology.baselines.hyperx import HyperX
from compilers.topology.baselines.jellyfish import Jellyfish
from compilers.topology.baselines.megafly import Megafly
from compilers.topology.baselines.mlfm import Mlfm
from compilers.topology.baselines.slimfly import SlimFly
from compilers.topology.baselines.spectralfly import SpectralFly

__all__ = ["BASELINES", "Baseline", "BaselineDesign"]

BASELINES: dict[str, Baseline] = {
    family.name: family
    for family in (
        SlimFly(),
        Dragonfly(),
        HyperX(),
        Jellyfish(),
        FatTree(),
        Megafly(),
        Mlfm(),
        Bundlefly(),
        SpectralFly(),
        DRing(),
    )
}
