"""SR Linux: its class, names of ports, what its devices print, and how it is pushed."""

ALIASES = ("nokia",)
"""What people look for who mean this system."""
