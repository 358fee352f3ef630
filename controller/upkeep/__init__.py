"""A running fabric kept: failures repaired, load followed."""
