"""Tests of the markers' syntax and of what other ranges state."""
