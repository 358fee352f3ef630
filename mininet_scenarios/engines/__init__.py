"""Engines that a scenario runs on, from the model to routed kernels."""
