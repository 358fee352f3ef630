"""Routing: which egress class each switch uses for each destination."""
