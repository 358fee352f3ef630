"""Topologies: graphs, the finite fields and the geometry that families are made of, and layouts."""
