"""Text for the terminal: numbers, tables and reports."""
