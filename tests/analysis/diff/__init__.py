"""Tests of what two captures are compared by."""
