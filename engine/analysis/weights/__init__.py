"""What a model's weights are like, without running it: pure functions of its tensors."""

from engine.analysis.weights.circuit import Circuit, by_head, circuit
from engine.analysis.weights.histogram import Histogram, histogram
from engine.analysis.weights.matrices import Matrix, matrices
from engine.analysis.weights.projection import Neighbours, Projection, neighbours, projection
from engine.analysis.weights.spectrum import Spectrum, spectrum

__all__ = [
    "Circuit",
    "Histogram",
    "Matrix",
    "Neighbours",
    "Projection",
    "Spectrum",
    "by_head",
    "circuit",
    "histogram",
    "matrices",
    "neighbours",
    "projection",
    "spectrum",
]
