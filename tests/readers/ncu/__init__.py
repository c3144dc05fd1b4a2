"""The reader of Nsight Compute."""
