"""OpenFlow bytes to and from a switch."""
