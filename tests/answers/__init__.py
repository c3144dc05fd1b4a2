"""The JSON of every command, validated against its schema."""
