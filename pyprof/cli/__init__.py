"""The command line: how commands are defined, their options and the values of these."""
