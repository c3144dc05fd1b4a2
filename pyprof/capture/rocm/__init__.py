"""Captures of AMD GPUs by rocprofv3."""
