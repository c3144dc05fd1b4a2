"""Answers that only pages and pictures show; JSON has none of them."""
