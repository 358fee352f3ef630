"""Comparison of feasible fabrics, with their figures and costs, from formulas alone."""
