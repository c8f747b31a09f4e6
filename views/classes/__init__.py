"""Pictures of a class session: what was handed in at one step."""
