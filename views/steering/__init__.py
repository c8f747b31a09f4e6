"""What the page Steering asks, and its charts."""
