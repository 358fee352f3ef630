"""What jobs on a fabric need: files for schedulers, collective libraries, simulators; trees."""

ENTRY_POINTS = {
    "polarfab.verbs": {"trees": "extensions.clusters.trees.trees_verb:command"},
    "polarfab.functions": {"trees": "extensions.clusters.trees:trees"},
    "polarfab.exports": {
        "slurm": "extensions.clusters.slurm_topology:files",
        "topograph": "extensions.clusters.topograph_files:model",
        "kubernetes": "extensions.clusters.topograph_files:labels",
        "nccl": "extensions.clusters.nccl_order:files",
        "simgrid": "extensions.clusters.simulators.simgrid_platform:of_planes",
        "ns3": "extensions.clusters.simulators.ns3_program:of_planes",
        "booksim": "extensions.clusters.simulators.booksim_network:of_planes",
    },
}
