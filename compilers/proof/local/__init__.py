"""The local proof: every state of every packet by itself, in the place of walks."""
