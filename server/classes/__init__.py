"""Class sessions: what a teacher asks, what learners hand in, and which of it is right by the model."""
