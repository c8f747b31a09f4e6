"""What is foretold of a training, held against one that is under way."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine.data.kinds.stories import Stories
from engine.model.transformer import Transformer, initialise
from engine.training import Recipe, RunFolder, read_recipe
from engine.training.cluster.parallel import Peers
from engine.training.launch.estimate import FILE, as_far_as_known, calibrate, estimate, operations
from engine.training.launch.machine import Abilities, plan
from engine.training.launch.pace import time_left
from engine.training.recipe.optimiser import optimiser_state
from engine.training.recipe.recipe import Optimiser
from engine.training.run.status import Status, write_status
from engine.training.trainer import Trainer

ASSETS = Path(__file__).parents[3] / "assets"


def open_recipe(name: str) -> Recipe:
    recipe = read_recipe(ASSETS / f"{name}.toml")
    table = Stories(200, 20) if isinstance(recipe.data.table, Stories) else recipe.data.table
    machine = replace(recipe.machine, device="cpu", precision="float32", threads=1)
    return replace(recipe, data=replace(recipe.data, table=table), machine=machine)


def held(trainer: Trainer) -> int:
    """Bytes that one update holds at its most: what autograd says it saves in a part of the batch, that part's logits,
    and what outlasts the update."""
    model = trainer.model
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seen: dict[int, tuple[int, Tensor]] = {}
    kept: list[int] = []
    forward = trainer.compilation.forward

    def noted(**inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kept.append(sum(size for size, _ in seen.values()))
        seen.clear()
        made = forward(**inputs)
        seen[0] = (made[0].nbytes, made[0].detach())
        return made

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and (tensor.is_floating_point() or tensor.dtype == torch.bool):
            seen[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    trainer.compilation.forward = noted
    with saved_tensors_hooks(save, lambda tensor: tensor):
        trainer.advance()
    weights = sum(p.nbytes for p in model.parameters())
    memory = sum(tensor.nbytes for tensor in optimiser_state(model, trainer.optimiser).values())
    return 2 * weights + memory + max(*kept, sum(size for size, _ in seen.values()))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("name", ["recipes/stories", "lab/induction", "recipes/digits-vit"])
def test_memory_is_that_of_a_run_within_a_fifth(name: str, dropout: float, tmp_path: Path) -> None:
    recipe = open_recipe(name)
    recipe = replace(recipe, model=replace(recipe.model, dropout=dropout))
    run = RunFolder(tmp_path)
    run.adopt(recipe)
    trainer = Trainer(recipe, run, plan(recipe.machine, Abilities.of_this_machine()), Peers())
    found = estimate(recipe, tmp_path)
    assert found.parameters == pytest.approx(sum(p.numel() for p in trainer.model.parameters()), rel=0.02)
    assert found.memory_bytes == pytest.approx(held(trainer), rel=0.2)


@pytest.mark.parametrize("kind", ["adamw", "sgd", "muon"])
def test_the_optimisers_memory_is_counted_and_parts_need_less(kind: str, tmp_path: Path) -> None:
    recipe = replace(open_recipe("lab/induction"), optimiser=Optimiser(kind=kind))  # type: ignore[arg-type]
    divided = replace(recipe, batch=replace(recipe.batch, accumulate=4))
    run = RunFolder(tmp_path)
    run.adopt(divided)
    trainer = Trainer(divided, run, plan(divided.machine, Abilities.of_this_machine()), Peers())
    assert estimate(divided, tmp_path).memory_bytes == pytest.approx(held(trainer), rel=0.2)
    assert estimate(divided, tmp_path).memory_bytes < 0.6 * estimate(recipe, tmp_path).memory_bytes


def test_time_is_unknown_until_the_machine_is_measured_and_grows_with_the_work(tmp_path: Path) -> None:
    recipe = open_recipe("lab/induction")
    assert estimate(recipe, tmp_path).seconds is None
    (tmp_path / FILE).write_text('"no speeds"')
    assert estimate(recipe, tmp_path).seconds is None
    speed, threads = calibrate(recipe, tmp_path), torch.get_num_threads()
    assert speed.block > 0 and speed.narrow > 0 and speed.wide > 0 and torch.get_num_threads() == threads
    once = estimate(recipe, tmp_path).seconds
    twice = estimate(replace(recipe, schedule=replace(recipe.schedule, steps=2 * recipe.schedule.steps)), tmp_path)
    larger = estimate(replace(recipe, batch=replace(recipe.batch, size=4 * recipe.batch.size)), tmp_path).seconds
    assert once is not None and twice.seconds == pytest.approx(2 * once)
    assert larger is not None and larger > once
    elsewhere = replace(recipe, machine=replace(recipe.machine, threads=17))
    assert estimate(elsewhere, tmp_path).seconds is None


def test_operations_are_those_that_pytorch_counts() -> None:
    config = as_far_as_known(open_recipe("lab/induction"))
    model = initialise(Transformer(config), 0)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(torch.zeros(2, 32, dtype=torch.long)).square().sum().backward()
    assert operations(config, 2, 32) == pytest.approx(counter.get_total_flops(), rel=0.1)


def measure_run(recipe: Recipe, folder: Path, *times: tuple[int, float], host: str = "") -> None:
    """A run that has logged so many steps after so many seconds."""
    run = RunFolder(folder)
    run.adopt(recipe)
    write_status(run.status, Status("running", host=host or socket.gethostname()))
    for step, seconds in times:
        run.log({"step": step, "seconds": seconds})


def test_time_is_what_a_run_under_way_has_spent_and_what_it_has_left(tmp_path: Path) -> None:
    recipe = open_recipe("lab/induction")
    steps = recipe.schedule.steps
    measure_run(recipe, tmp_path / "run", (0, 0.0), (1, 3.0))
    assert estimate(recipe, tmp_path).seconds is None  # the first step tells nothing of the others
    measure_run(recipe, tmp_path / "run", (10, 5.0))
    assert estimate(recipe, tmp_path).seconds == pytest.approx(0.5 * steps)
    measure_run(recipe, tmp_path / "run", (20, 25.0))
    left = time_left(RunFolder(tmp_path / "run").read_metrics(), steps)
    assert left is not None and estimate(recipe, tmp_path).seconds == pytest.approx(25 + left)


def test_time_follows_the_newest_run_of_the_same_steps_on_this_machine(tmp_path: Path) -> None:
    recipe = open_recipe("lab/induction")
    calibrate(recipe, tmp_path)
    computed = estimate(recipe, tmp_path).seconds
    longer = replace(recipe, seed=7, schedule=replace(recipe.schedule, steps=3 * recipe.schedule.steps))
    times = (0, 0.0), (60, 15.0)
    measure_run(recipe, tmp_path / "elsewhere", *times, host="another")
    measure_run(replace(recipe, machine=replace(recipe.machine, threads=17)), tmp_path / "threads", *times)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "metrics.jsonl").write_text("no line\n")
    assert estimate(recipe, tmp_path).seconds == computed
    measure_run(recipe, tmp_path / "run", *times)
    assert estimate(longer, tmp_path).seconds == pytest.approx(0.25 * longer.schedule.steps)


def test_time_of_other_steps_is_computed_and_held_against_a_run_on_the_same_data(tmp_path: Path) -> None:
    recipe = open_recipe("lab/induction")
    larger = replace(recipe, batch=replace(recipe.batch, size=4 * recipe.batch.size))
    measure_run(recipe, tmp_path / "run", (0, 0.0), (60, 15.0))
    measure_run(open_recipe("lab/reverse"), tmp_path / "newer, of other data", (0, 0.0), (60, 600.0))
    assert estimate(larger, tmp_path).seconds is None
    calibrate(recipe, tmp_path)
    (tmp_path / "run").rename(tmp_path / ".away")
    before, ours = (estimate(one, tmp_path).seconds for one in (larger, recipe))
    (tmp_path / ".away").rename(tmp_path / "run")
    assert before is not None and ours is not None
    slower = 0.25 * recipe.schedule.steps / ours
    assert estimate(larger, tmp_path).seconds == pytest.approx(slower * before)
