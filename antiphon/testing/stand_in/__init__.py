"""A folder for the module path: `tensorrt_llm` is found in it, on machines without a GPU."""
