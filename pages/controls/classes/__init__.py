"""Class sessions: the teacher's side, and what stands above every page of a learner."""
