"""Kinds of tokenizers that can be trained here, a file each, found by its place."""
