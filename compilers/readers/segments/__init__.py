"""Readers of source routes by segments."""
