"""Moving a running fabric between two builds without losing a packet (docs/how-to/move.md)."""
