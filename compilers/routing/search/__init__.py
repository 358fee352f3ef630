"""Routes by search, in graphs that no algebra routes: shortest paths, alternates, repair."""
