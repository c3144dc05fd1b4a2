"""Tests of what names and devices tell."""
