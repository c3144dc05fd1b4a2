"""The version, in a module of its own: importing it loads none of the public names."""

__version__ = "0.1.0"
