"""GGUF, llama.cpp's file of a whole model: settings, tokenizer and weights, quantised or not."""
