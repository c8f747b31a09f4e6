"""`python -m scripts.plane [FOLDER]` trains the model of two dimensions of the lessons, in three seconds."""

import sys
from pathlib import Path

from engine.course.plane import NAME, make_plane
from engine.places import CHECKPOINTS

if __name__ == "__main__":
    make_plane().save(Path(sys.argv[1] if sys.argv[1:] else CHECKPOINTS) / NAME)
