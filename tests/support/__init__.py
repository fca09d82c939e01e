"""Helpers of the tests and the benchmarks. Nothing here imports pytest."""
