"""Benchmarks: the only place that knows the true values behind data."""
