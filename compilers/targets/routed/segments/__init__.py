"""SRv6: uSIDs of switches, paths as carriers, and their form on SONiC."""
