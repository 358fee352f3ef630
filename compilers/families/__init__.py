"""Families of topologies, one a file: found by their names, as those of other packages are."""
