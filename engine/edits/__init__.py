"""Changes to a run, as data: small frozen dataclasses that say which hooks they touch and what they do there.

`to_dict` and `edit_from_dict` carry them through JSON (links, notebooks, saved lessons).
"""

from engine.edits.adapters import ApplyAdapter, find_adapter, keep_adapter
from engine.edits.circuit import KeepParts
from engine.edits.directions import AddDirection, ProjectOut
from engine.edits.edit import AnchoredEdit, Edit, RealTokens, Side, Where, edit_from_dict
from engine.edits.edit_validation import validate_edit
from engine.edits.experts import SendTokens, SilenceExperts, UseExperts
from engine.edits.heads import AttentionTemperature, SilenceHeads
from engine.edits.masks import DrawMask, PaintMask, PresetMask
from engine.edits.noise import AddNoise
from engine.edits.parts import parts
from engine.edits.patterns import DrawPattern, PaintPattern, SetPattern
from engine.edits.positions import DropPositions, ShiftPositions, SwapPositions
from engine.edits.quantise import ExchangedMaps, QuantiseMaps
from engine.edits.sources import ChangeToken, FetchedEdit, Patch, Source, SourceRuns, Steer, resolve
from engine.edits.values import Replace, Scale

__all__ = [
    "AddDirection",
    "AddNoise",
    "ApplyAdapter",
    "AnchoredEdit",
    "AttentionTemperature",
    "ChangeToken",
    "DrawMask",
    "DrawPattern",
    "DropPositions",
    "Edit",
    "ExchangedMaps",
    "FetchedEdit",
    "KeepParts",
    "PaintMask",
    "PaintPattern",
    "Patch",
    "PresetMask",
    "ProjectOut",
    "QuantiseMaps",
    "RealTokens",
    "Replace",
    "SourceRuns",
    "Scale",
    "SendTokens",
    "SetPattern",
    "ShiftPositions",
    "Side",
    "SilenceExperts",
    "SilenceHeads",
    "Source",
    "Steer",
    "SwapPositions",
    "UseExperts",
    "Where",
    "edit_from_dict",
    "find_adapter",
    "keep_adapter",
    "parts",
    "resolve",
    "validate_edit",
]
