"""Tests of the files of other viewers, by those viewers where they can run."""
