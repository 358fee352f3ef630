"""Scenarios as data, and the runners that bring them up and check them."""
