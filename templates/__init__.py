"""Jinja2 templates, a folder a target. They print and compute nothing."""
