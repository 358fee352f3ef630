"""Topology families that papers compare PolarFly with. `compile` takes them like any other family.

Each module is one family: its parameters and their checks, its graph, its designs by radix, and
formulas for what `analyse` and `design` print.
"""

ENTRY_POINTS = {
    "polarfab.families": {
        "bundlefly": "extensions.baselines.bundlefly:Bundlefly",
        "dragonfly": "extensions.baselines.dragonfly:Dragonfly",
        "fat-tree": "extensions.baselines.fat_tree:FatTree",
        "hyperx": "extensions.baselines.hyperx:HyperX",
        "jellyfish": "extensions.baselines.jellyfish:Jellyfish",
        "megafly": "extensions.baselines.megafly:Megafly",
        "mlfm": "extensions.baselines.mlfm:Mlfm",
        "slimfly": "extensions.baselines.slimfly:SlimFly",
        "spectralfly": "extensions.baselines.spectralfly:SpectralFly",
    }
}
