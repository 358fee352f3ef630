"""The speed of polarfab and that of other programs: `python -m benchmarks NAME`, in a checkout."""
