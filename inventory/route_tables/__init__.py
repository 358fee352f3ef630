"""Routing tables as devices print them, whatever the system."""
