"""One forward pass: what it reads, records and changes, and what all sessions share of it within a budget of memory."""
