"""Kinds of work that a cluster of Ray computes in parts: each of these files declares one as `KIND`."""
