"""OpenFlow 1.3: the messages of a switch's program, and the same as ovs-ofctl reads it."""
