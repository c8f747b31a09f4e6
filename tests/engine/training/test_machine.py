import pytest
import torch

from engine.training.launch.machine import Abilities, Plan, plan
from engine.training.recipe.recipe import Machine

CPU = Abilities(cuda=False, bfloat16=False, cores=6)
AMPERE = Abilities(cuda=True, bfloat16=True, cores=16)
TURING = Abilities(cuda=True, bfloat16=False, cores=16)


@pytest.mark.parametrize(
    ("machine", "able", "expected"),
    [
        (Machine(), CPU, Plan("cpu", None, scaled=False, compile=False, threads=6)),
        (Machine(), AMPERE, Plan("cuda", torch.bfloat16, scaled=False, compile=True, threads=16)),
        (Machine(), TURING, Plan("cuda", torch.float16, scaled=True, compile=True, threads=16)),
        (Machine(device="cpu", threads=2), AMPERE, Plan("cpu", None, scaled=False, compile=False, threads=2)),
        (Machine(precision="float32", compile="off"), AMPERE, Plan("cuda", None, False, False, 16)),
        (Machine(precision="bfloat16", compile="on"), CPU, Plan("cpu", torch.bfloat16, False, True, 6)),
    ],
)
def test_the_plan_follows_the_recipe_and_what_the_computer_can(
    machine: Machine, able: Abilities, expected: Plan
) -> None:
    assert plan(machine, able) == expected


def test_what_this_computer_lacks_is_said() -> None:
    with pytest.raises(ValueError, match='machine.device is "cuda", and PyTorch sees no CUDA device'):
        plan(Machine(device="cuda"), CPU)
    with pytest.raises(ValueError, match="float16.* needs CUDA"):
        plan(Machine(precision="float16"), CPU)


def test_the_plan_says_what_it_chose_and_why() -> None:
    said = " ".join(plan(Machine(), AMPERE).why)
    assert "Device cuda: PyTorch sees a CUDA device." in said and "Precision bfloat16: the device" in said
    assert "TF32" in said and "Compiled: " in said and "Threads 16: one for each core" in said
    said = " ".join(plan(Machine(device="cpu", threads=2), CPU).why)
    assert "Device cpu: as the recipe asks." in said and "Precision float32: results are the same bit for bit" in said
    assert "TF32" not in said and "Not compiled: " in said and "Threads 2: as the recipe asks." in said
    assert all(len(plan(Machine(), able).why) == 4 for able in (CPU, AMPERE, TURING))


def test_trainings_that_may_run_together_share_the_cores_and_one_that_goes_on_has_those_it_began_with() -> None:
    assert [plan(Machine(), CPU, beside).threads for beside in (1, 2, 4, 100)] == [6, 3, 1, 1]
    assert plan(Machine(), CPU, 2).why[-1].startswith("Threads 3: a share of 6 cores for each of the 2 trainings")
    assert (plan(Machine(), CPU, 2, before=5).threads, plan(Machine(), CPU, 2, before=5).why[-1]) == (
        5,
        "Threads 5: as it began.",
    )
    assert plan(Machine(threads=4), CPU, 2, before=5).threads == 4


def test_products_are_tf32_on_cuda_only(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", said.append)
    plan(Machine(threads=1), AMPERE).prepare()
    assert said == ["high"]
    plan(Machine(threads=1), CPU).prepare()
    assert said == ["high"]
