"""Topologies: the algebra of every family, behind one small interface."""
