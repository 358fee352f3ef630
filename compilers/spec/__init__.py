"""The spec: fabric.yaml as values, its checks, and what balances and targets are called in it."""
