"""The page Generate: writing, beam search, temperature, prompting, the KV cache, surprise."""
