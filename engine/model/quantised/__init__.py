"""Weights that are stored as integers of few bits: schemes by name, and tensors that stay so until they are computed
with."""

from engine.model.quantised import iq4, k_quants, legacy, mxfp4
from engine.model.quantised.scheme import Scheme

SCHEMES: dict[str, Scheme] = {scheme.name: scheme for kind in (legacy, k_quants, iq4, mxfp4) for scheme in kind.SCHEMES}
