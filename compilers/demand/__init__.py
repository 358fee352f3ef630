"""Demands: traffic between switches, followed through tables, and the weights that fit it."""
