"""Lossless priorities (PFC) of network systems."""
