"""What one session may ask for, in one place. Each limit can be raised by an environment variable of the same name."""

from __future__ import annotations

import os

MAX_TOKENS = int(os.environ.get("LOUPE_MAX_TOKENS", "256"))  # of a text drawn on a page
LONG_TOKENS = int(os.environ.get("LOUPE_LONG_TOKENS", "1024"))  # of a text on the page about attention, drawn in tiles
MAX_EDITS = int(os.environ.get("LOUPE_MAX_EDITS", "64"))  # of one what-if, and so of a link
TRACE_MEMORY = int(os.environ.get("LOUPE_TRACE_MEMORY_MIB", "1024")) * 2**20  # bytes of traces kept for all sessions
MAX_DOWNLOAD = int(os.environ.get("LOUPE_MAX_DOWNLOAD_MIB", "8192")) * 2**20  # bytes of one checkpoint from a hub
MODELS_FOLDER = os.environ.get("LOUPE_MODELS", "models")  # folders in it are offered beside the shipped models
MAX_UPLOAD = int(os.environ.get("LOUPE_MAX_UPLOAD_MIB", "2048")) * 2**20  # bytes of one uploaded checkpoint, unpacked
UPLOADS_DISK = int(os.environ.get("LOUPE_UPLOADS_DISK_MIB", "16384")) * 2**20  # bytes of all uploads that are kept
MODELS_MEMORY = int(os.environ.get("LOUPE_MODELS_MEMORY_MIB", "8192")) * 2**20  # bytes of open checkpoints' weights
