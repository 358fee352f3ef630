"""Families of topologies, one in each file. A family is found by the name of its file."""
