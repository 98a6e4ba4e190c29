"""The OpenVINO GenAI engine: the only room that imports `openvino` and `openvino_genai`."""
