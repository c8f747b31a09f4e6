"""Where trainings run: as processes of this machine, or as jobs of a cluster of Ray."""
