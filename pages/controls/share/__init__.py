"""Share & export: links, downloads, and the settings that a link hides."""
