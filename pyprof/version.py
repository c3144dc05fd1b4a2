"""The version: of its own, so that who needs it does not import the public names, too."""

__version__ = "0.1.0"
