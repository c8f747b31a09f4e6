"""What a link can hold of the page Open a model."""

from __future__ import annotations

from dataclasses import replace

from pages.controls.model_input.parameters import MODEL
from pages.controls.state.page_state import PageState

CHECKPOINT = PageState("checkpoint", replace(MODEL, label="checkpoint", carried=False))
