"""Tables of rows: how wide columns are, and what is cut, scaled or left out."""
