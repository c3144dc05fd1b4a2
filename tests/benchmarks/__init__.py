"""Tests of what the benchmarks run on."""
