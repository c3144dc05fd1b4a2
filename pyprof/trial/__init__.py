"""Trials: a script that stays as it is, run with and without a change, each in a fresh process."""
