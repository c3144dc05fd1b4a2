"""What runs in the user's process: hooks that apply a change, and count, time and keep losses."""
