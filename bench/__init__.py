"""Benchmarks: every figure is a ratio of two medians from one run, as machines are shared and noisy."""
