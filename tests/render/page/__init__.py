"""Tests of what the page shows, as data."""
