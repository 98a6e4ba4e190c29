"""The TensorRT-LLM engine: the only room that imports `tensorrt_llm`."""
