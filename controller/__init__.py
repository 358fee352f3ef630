"""The controller of a fabric's OpenFlow switches, on Ryu or os-ken."""
