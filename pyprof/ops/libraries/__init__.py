"""Costs of the ops of serving and training libraries: vLLM, SGLang, aiter and others."""
