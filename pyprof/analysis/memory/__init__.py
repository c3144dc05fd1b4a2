"""What held a device's memory: peaks, growth, and what would lower them."""
