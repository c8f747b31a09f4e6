"""What one session may ask for and where it begins, in one place, each set by an environment variable."""

from __future__ import annotations

import os

MAX_TOKENS = int(os.environ.get("LOUPE_MAX_TOKENS", "256"))  # of a text drawn on a page
LONG_TOKENS = int(os.environ.get("LOUPE_LONG_TOKENS", "1024"))  # of a text on Attention, Compare, Why this token
SURPRISE_TOKENS = int(os.environ.get("LOUPE_SURPRISE_TOKENS", "20000"))  # of a text whose surprise is measured
MAX_EDITS = int(os.environ.get("LOUPE_MAX_EDITS", "64"))  # of one what-if, and so of a link
FLOW_WORK = int(os.environ.get("LOUPE_FLOW_WORK", "80000000"))  # weights x keys of a token's attention flow: some 5 s
TRACE_MEMORY = int(os.environ.get("LOUPE_TRACE_MEMORY_MIB", "1024")) * 2**20  # bytes of traces kept for all sessions
MAX_DOWNLOAD = int(os.environ.get("LOUPE_MAX_DOWNLOAD_MIB", "8192")) * 2**20  # bytes of one checkpoint from a hub
FIRST_MODEL = os.environ.get("LOUPE_MODEL", "everyday")  # that a visitor meets: a shipped one, or one of MODELS_FOLDER
MODELS_FOLDER = os.environ.get("LOUPE_MODELS", "models")  # folders in it are offered beside the shipped models
MAX_UPLOAD = int(os.environ.get("LOUPE_MAX_UPLOAD_MIB", "2048")) * 2**20  # bytes of one uploaded checkpoint, unpacked
UPLOADS_FOLDER = os.environ.get("LOUPE_UPLOADS", "")  # where several processes of one server tell each other of uploads
UPLOADS_DISK = int(os.environ.get("LOUPE_UPLOADS_DISK_MIB", "16384")) * 2**20  # bytes of all uploads that are kept
MODELS_MEMORY = int(os.environ.get("LOUPE_MODELS_MEMORY_MIB", "8192")) * 2**20  # bytes of open checkpoints' weights
ADAPTERS_MEMORY = int(os.environ.get("LOUPE_ADAPTERS_MEMORY_MIB", "1024")) * 2**20  # bytes of adapters that edits name

# Of trainings, which are processes of their own.
RUNS_FOLDER = os.environ.get("LOUPE_RUNS", "runs")  # run directories in it are offered, step by step
CLASSES_FILE = os.environ.get("LOUPE_CLASSES", os.path.join(RUNS_FOLDER, ".classes.sqlite"))  # of class sessions
LTI_FILE = os.environ.get("LOUPE_LTI", "")  # settings of the platforms that may open Loupe (docs/lti.md); "" for none
MAX_TRAININGS = int(os.environ.get("LOUPE_MAX_TRAININGS", "2"))  # at a time; others wait for their turn
MAX_QUEUED = int(os.environ.get("LOUPE_MAX_QUEUED", "16"))  # that wait
MAX_STEPS = int(os.environ.get("LOUPE_MAX_STEPS", "1000000"))  # of a training
MAX_LAYERS = int(os.environ.get("LOUPE_MAX_LAYERS", "256"))  # of a model that is trained
MAX_PARAMETERS = int(os.environ.get("LOUPE_MAX_PARAMETERS", "100000000"))  # of a model that is trained
MAX_RUN_SECONDS = int(os.environ.get("LOUPE_MAX_RUN_SECONDS", "86400"))  # from one start of a training to its stop
RUNS_DISK = int(os.environ.get("LOUPE_RUNS_DISK_MIB", "16384")) * 2**20  # bytes of all run directories
DELETED_DAYS = int(os.environ.get("LOUPE_DELETED_DAYS", "7"))  # for which a deleted run can be had back
CORPORA_FOLDER = os.environ.get("LOUPE_CORPORA", "")  # of published texts that shipped recipes learn from
MAX_DATA = int(os.environ.get("LOUPE_MAX_DATA_MIB", "64")) * 2**20  # bytes of one file to learn from
DATA_DISK = int(os.environ.get("LOUPE_DATA_DISK_MIB", "4096")) * 2**20  # bytes of all of them
