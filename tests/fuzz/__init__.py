"""A fuzzer: small captures of every kind, randomly damaged, go through every command."""
