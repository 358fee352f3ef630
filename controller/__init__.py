"""The controller: sessions with the switches, on Ryu or on os-ken."""
