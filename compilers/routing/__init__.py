"""Routing: the egress class of each switch for each destination, and what the class does."""
