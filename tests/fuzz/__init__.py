"""A fuzzer: small captures of every kind, damaged at random, go through every command."""
