"""Vertices onto nodes, edges onto ports, addresses: the topology on its hardware."""
