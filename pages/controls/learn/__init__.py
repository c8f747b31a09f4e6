"""The course: its catalogue of texts, its lessons, and the page that shows one."""
