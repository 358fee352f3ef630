"""Readers of routers' configs, a system a file."""
