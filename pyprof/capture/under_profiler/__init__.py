"""The script under a profiler that is a program around it: what nsys and rocprofv3 share."""
