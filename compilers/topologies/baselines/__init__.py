"""Baselines: the other families that the papers compare with, for comparison only."""

from compilers.topologies.baselines.bundlefly import Bundlefly
from compilers.topologies.baselines.dragonfly import Dragonfly
from compilers.topologies.baselines.family import Baseline, BaselineDesign
from compilers.topologies.baselines.fattree import FatTree
from compilers.topologies.baselines.hyperx import HyperX
from compilers.topologies.baselines.jellyfish import Jellyfish
from compilers.topologies.baselines.megafly import Megafly
from compilers.topologies.baselines.mlfm import Mlfm
from compilers.topologies.baselines.slimfly import SlimFly
from compilers.topologies.baselines.spectralfly import SpectralFly

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
    )
}
