"""What programs ask of a server that was started with `--api`: traces, and texts in OpenAI's form."""
