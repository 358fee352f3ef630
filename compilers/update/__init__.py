"""Moving a running fabric from one build to another without losing a packet (docs/plan.md)."""
