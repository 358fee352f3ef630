"""EOS: its class, names of ports, what its devices print, and how it is pushed."""

ALIASES = ("arista",)
"""What people look for who mean this system."""
