"""eBGP of the targets that route: its form, and as the models of network systems."""
