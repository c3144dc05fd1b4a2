"""What filled the memory of devices."""
