"""Where the processes of a run compute, and what adds up their gradients; the cards are stand-ins."""

import pytest
import torch
from torch import distributed

from engine.training.cluster import parallel
from engine.training.cluster.parallel import Peers, backend


@pytest.mark.parametrize(("cards", "places", "added"), [(1, [0, 0], "gloo"), (2, [0, 1], "nccl"), (4, [0, 1], "nccl")])
def test_processes_have_a_card_each_or_share_those_that_there_are(
    cards: int, places: list[int], added: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    assert [Peers(rank, 2, rank).device("cuda").index for rank in range(2)] == places
    assert (backend("cuda", 2), backend("cpu", 2)) == (added, "gloo")


def test_a_process_tells_cuda_its_card_before_it_meets_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL puts what is no tensor on the current device, which would be the first one for all of them."""
    seen: list[object] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", seen.append)
    monkeypatch.setattr(distributed, "init_process_group", lambda added, timeout: seen.append(added))
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: seen.append("over"))
    for name, value in (("WORLD_SIZE", "4"), ("RANK", "3"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with parallel.peers("cuda") as here:
        assert (here.rank, here.count, here.local_rank) == (3, 4, 1)
    assert seen == [torch.device("cuda", 1), "nccl", "over"]
