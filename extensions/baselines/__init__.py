"""Families of topologies that papers compare with, and that `compile` takes as any other."""

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
