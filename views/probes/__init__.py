"""What the page Linear probes asks, and its charts."""
