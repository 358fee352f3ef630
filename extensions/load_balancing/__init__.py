"""Adaptive load balancing: while it runs, a controller shifts weights by what switches count."""

ENTRY_POINTS = {
    "polarfab.adaptations": {"ugal-pf": "extensions.load_balancing.adaptation:UgalAdaptation"}
}
