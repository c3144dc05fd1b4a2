"""Tests of the half that runs inside the user's script."""
