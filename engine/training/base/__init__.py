"""The checkpoint that a training begins with, the head it is given and the adapter that learns."""
