"""Tests of the benchmarks' inputs."""
