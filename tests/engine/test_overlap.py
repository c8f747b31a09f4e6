"""chrF and BLEU, against what sacrebleu 2 says of the same texts."""

import pytest

from engine.scoring.overlap import bleu, chrf

TEXTS = [
    "Où est mon chapeau",
    "Le train était encore en retard .",
    "Je suis fatigué et je vais au lit.",
]
REFERENCES = [
    ["Où est mon chapeau ?", "Où se trouve mon chapeau ?"],
    ["Le train était de nouveau en retard.", "Le train avait encore du retard."],
    ["Je suis fatigué et je vais me coucher.", "Je suis las."],
]


def test_both_are_those_of_the_reference_implementation() -> None:
    assert chrf(TEXTS, REFERENCES) == pytest.approx(0.7085774843415422)
    assert bleu(TEXTS, REFERENCES) == pytest.approx(0.5733717596834447)


def test_they_are_1_for_the_reference_itself_and_0_for_what_has_nothing_of_it() -> None:
    same = [some[1] for some in REFERENCES]
    assert chrf(same, REFERENCES) == bleu(same, REFERENCES) == pytest.approx(1)
    assert chrf(["xyz"], [["abc"]]) == bleu(["xyz"], [["abc"]]) == chrf([""], [["abc"]]) == bleu([""], [["abc"]]) == 0
