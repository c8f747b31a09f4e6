"""Text from a model: sampling with every stage kept, beam and contrastive search, stopping, few-shot prompts."""
