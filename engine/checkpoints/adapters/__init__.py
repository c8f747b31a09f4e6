"""Low-rank adapters in PEFT's format: adapter_config.json beside adapter_model.safetensors."""
