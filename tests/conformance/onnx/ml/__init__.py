"""Random cases of operators of ai.onnx.ml."""
