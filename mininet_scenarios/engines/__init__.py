"""The engines of scenarios, from the model to routed kernels."""
