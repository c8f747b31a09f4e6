"""Shipped models by how they came about."""

from engine.checkpoints.locate import ANSWER_KEY, SHIPPED, shipped_names

COMPILED = [name for name in shipped_names() if (SHIPPED / name / ANSWER_KEY).is_file()]
TRAINED = [name for name in shipped_names() if name not in COMPILED]
DIFFERENT = [*TRAINED, COMPILED[0]]  # for what the compiled ones share
LARGER = [name for name in DIFFERENT if name != "plane"]  # of several blocks and heads
