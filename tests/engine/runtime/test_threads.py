"""A model is shared by every session: what one of them edits or records is nobody else's business."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import torch

from engine.edits import Edit, Scale, SilenceHeads
from engine.runtime.run import run
from tests.engine import tiny

ROUNDS = 30
PEOPLE: list[tuple[list[Edit], list[str]]] = [
    ([], ["*"]),
    ([SilenceHeads(0, [0, 1]), Scale("*.mlp.out", 3.0)], ["*"]),
    ([], ["logits"]),
    ([Scale("embed.tokens", 0.5)], ["*.pattern", "logits"]),
]


def test_people_sharing_a_model_get_bit_for_bit_what_each_gets_alone() -> None:
    model = tiny.model(tiny.config(layers=6))
    alone = [run(model, tiny.IDS, keep=keep, edits=edits) for edits, keep in PEOPLE]
    together = Barrier(len(PEOPLE))

    def person(number: int) -> list[str]:
        edits, keep = PEOPLE[number]
        wrong = []
        for _ in range(ROUNDS):
            together.wait()
            trace = run(model, tiny.IDS, keep=keep, edits=edits)
            assert list(trace) == list(alone[number])
            wrong += [name for name in trace if not torch.equal(trace[name], alone[number][name])]
        return wrong

    with ThreadPoolExecutor(len(PEOPLE)) as pool:
        assert list(pool.map(person, range(len(PEOPLE)))) == [[]] * len(PEOPLE)


def test_an_edit_that_fails_leaves_nothing_behind() -> None:
    model = tiny.model()
    before = run(model, tiny.IDS, keep="logits")["logits"]
    for _ in range(3):
        try:
            run(model, tiny.IDS, edits=[Scale("*.mlp.out", 3.0), SilenceHeads(2, [99])])
        except ValueError:
            pass
    assert torch.equal(run(model, tiny.IDS, keep="logits")["logits"], before)
    assert torch.equal(model(torch.tensor([tiny.IDS])), before)
