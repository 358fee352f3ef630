"""The controller of a fabric's OpenFlow switches, on Ryu or os-ken."""

API = "127.0.0.1:8080"
"""Where the management API is, and where its clients look for it, unless something else is said."""
