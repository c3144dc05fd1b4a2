"""SQLite databases as Arrow columns."""
