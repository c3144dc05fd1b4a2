"""Tests of what people are shown: exports, comparisons, pages."""
