"""Real Open vSwitch: daemons, databases, bridges, packets through them."""
