"""`python -m pyprof.capture SCRIPT.py`."""

from pyprof.capture.command import capture

if __name__ == "__main__":
    capture()
