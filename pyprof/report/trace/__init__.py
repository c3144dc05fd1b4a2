"""Chrome's trace events (JSON), as torch.profiler writes them and Perfetto and others read them.

Format: "Trace Event Format", Google, and the categories and arguments of Kineto's output.
"""
