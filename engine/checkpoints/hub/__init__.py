"""Checkpoints of a hub: `parse(text)` names one, `plan(name)` says what it takes, `fetch(download)` brings it here.

`folder_of(text)` does all three; its folder is what `engine.load` opens.
"""

from engine.checkpoints.hub.fetch import Progress, fetch, folder_of
from engine.checkpoints.hub.name import PREFIX, HubName, parse
from engine.checkpoints.hub.plan import Download, plan
from engine.checkpoints.hub.store import File

__all__ = ["PREFIX", "Download", "File", "HubName", "Progress", "fetch", "folder_of", "parse", "plan"]
