"""What to change: in a few sentences, as advice, as predicted, and as tried."""
