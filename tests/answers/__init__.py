"""The JSON of every command, held against its schema."""
