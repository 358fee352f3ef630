"""Demands: traffic between switches, its load on links by the tables, and weights fitted to it."""
