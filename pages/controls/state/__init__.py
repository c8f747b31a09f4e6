"""The state of a page: what a link can hold of it is declared once, and read and written here alone."""
