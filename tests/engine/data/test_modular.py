import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.kinds.modular import Modular, is_prime, operation_table


@given(st.sampled_from("+-*/"), st.sampled_from([3, 5, 7, 11, 13]))
def test_the_table_has_every_pair_once_with_its_result(operation: str, p: int) -> None:
    rows = operation_table(Modular(operation, p))  # type: ignore[arg-type]
    seen = set()
    for pair in rows:
        a, b = map(int, pair.source.split(operation))
        c = int(pair.target)
        seen.add((a, b))
        assert 0 <= c < p
        assert {"+": a + b - c, "-": a - b - c, "*": a * b - c, "/": c * b - a}[operation] % p == 0
    assert len(rows) == len(seen) == p * (p - (operation == "/"))


def test_the_share_is_learned_from_and_the_rest_is_held_out() -> None:
    task = Modular(modulus=17, trained=0.3)
    ours, theirs = list(task.pairs("train", 5)), list(task.pairs("held_out", 5))
    assert len(ours) == round(0.3 * 17**2) and len(ours) + len(theirs) == 17**2
    assert sorted(pair.source for pair in ours + theirs) == sorted(pair.source for pair in operation_table(task))
    assert set(ours) != set(task.pairs("train", 6))
    assert len(list(Modular(modulus=3, trained=0.999).pairs("held_out", 0))) == 1


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"operation": "/", "modulus": 9}, "data.modular.modulus must be a prime"),
        ({"modulus": 2}, "data.modular.modulus must be at least 3"),
        ({"modulus": 1000}, "data.modular.modulus must be at most 512, got 1000"),
        ({"trained": 1.0}, "data.modular.trained must be a share between 0 and 1"),
    ],
)
def test_options_that_make_no_task_are_refused(options: dict, about: str) -> None:
    with pytest.raises(ValueError, match=about):
        Modular(**options)


def test_primes() -> None:
    assert [n for n in range(30) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
