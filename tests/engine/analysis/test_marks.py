"""Analyses marked on models whose circuit is known."""

import pytest

from engine.analysis.interventions.marks import mark_analyses
from engine.compiled import Program, compile_program
from engine.compiled.programs import compiled_programs
from tests.engine import tiny  # noqa: F401 - one thread

EXACT = "activation patching", "zero ablation", "mean ablation"
# Of texts of equal length no pair has another length: what tells that of a text is found where it is taken out alone.
LENGTH = {"reversal": ("activation patching",)}
# The least recall of each estimate, of the programs in their order: a saturated softmax, or a step, has no slope, and a
# lens reads no block that writes for later ones.
RECALL = {
    "logit lens, by block": (0.5, 1.0, 0.5, 1.0, 0.33, 0.33),
    "table of heads": (1.0, 1.0, 1.0, 1.0, 0.5, 1.0),
    "what makes it fire": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "score split (Why this head)": (1.0, 1.0, 1.0, 1.0, 0.66, 1.0),
    "attribution patching": (0.75, 0.5, 1.0, 1.0, 0.25, 0.25),
    "direct attribution (Why this token)": (0.25, 0.5, 0.5, 1.0, 0.25, 0.25),
    "path patching": (0.85, 1.0, 0.71, 1.0, 0.28, 0.87),
    "edge attribution patching": (0.57, 0.25, 0.57, 1.0, 0.28, 0.25),
    "the same with integrated gradients": (0.85, 0.25, 0.71, 1.0, 0.28, 0.37),
}


@pytest.mark.parametrize("program", compiled_programs().values(), ids=lambda program: program.name)
def test_every_analysis_finds_nothing_beside_the_circuit_and_interventions_all_of_it(program: Program) -> None:
    checkpoint = compile_program(program)
    marks = {mark.analysis: mark for mark in mark_analyses(checkpoint, checkpoint.key)}
    assert {mark.precision for mark in marks.values()} == {1.0}
    for name in EXACT:
        assert (marks[name].recall == 1) != (name in LENGTH.get(program.name, ())), name
    number = [*compiled_programs()].index(program.name)
    assert {*marks} == {*EXACT, *RECALL}
    for name, least in RECALL.items():
        assert marks[name].recall >= least[number], name
        assert not marks[name].found - marks[name].needed
