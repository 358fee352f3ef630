"""The controller of a fabric's OpenFlow switches, on Ryu or os-ken."""

API = "127.0.0.1:8080"
"""The default address of the management API, for the controller and for its clients."""
