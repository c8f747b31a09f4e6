"""What a training is asked to do: the recipe, its file, its link, and what it is limited to."""
