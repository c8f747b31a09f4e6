"""One objective a file."""
