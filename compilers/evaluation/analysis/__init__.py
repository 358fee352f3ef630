"""Analyses of a built graph: distances, paths, load, bisection, resilience, growth."""
