"""Who opened which model, over a restart of the server."""
