"""What each kernel cost and achieved: records in, columns out. Knows no capture format."""
