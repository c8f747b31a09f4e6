"""Which places of a run a prediction needs: values put in place of others everywhere, and what follows."""
