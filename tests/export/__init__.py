"""Tests of exports, by the viewers they are for if these can run."""
