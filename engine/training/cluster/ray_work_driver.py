"""The job of one work in a cluster of Ray: gives the parts that are missing to nodes, for as long as somebody waits.

It is started by Ray, beside its head, as `python -m`. Where a node is lost, Ray runs its parts again on another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from engine.pulse import listen
from engine.runtime.shared_work import PARTS
from engine.settings import read_settings
from engine.training.cluster.ray_driver import POLL, RETRIES, describe_needs, node_of
from engine.training.cluster.ray_work import ASKED, TASK, compute_part, numbers_of, part_file
from engine.training.launch.job import FILE, JOB, Job, write_job
from engine.training.run.atomic import read_json

UNASKED = 20.0  # seconds for which nobody has waited, after which a job ends
Task = TypeVar("Task")


def main(folder: Path) -> None:
    import ray
    from ray.exceptions import RayError

    count = read_json(folder / TASK)["count"]
    parts = [part for part in range(PARTS) if numbers_of(part, count) and not part_file(folder, part).is_file()]
    say(folder, "waiting", f"waits for a node with {describe_needs(1, 0)}")
    ray.init(address="auto", log_to_driver=False)
    compute: Any = ray.remote(compute_part).options(num_cpus=1, max_retries=RETRIES)

    def wait(left: Sequence[Any]) -> list[Any]:
        done, rest = ray.wait(list(left), timeout=POLL)
        ray.get(done)
        return rest

    told = ""
    try:
        if not follow(folder, [compute.remote(folder, part) for part in parts], wait, find_nodes):
            (folder / FILE).unlink(missing_ok=True)
            return
    except (RayError, ValueError, OSError) as error:  # what a task raises is of both kinds
        lines = str(getattr(error, "cause", None) or error).strip().splitlines()
        told = f"Ray gave up a part: {(lines or [type(error).__name__])[0][:300]}"
    say(folder, "ended", told)


def follow(
    folder: Path,
    tasks: Sequence[Task],
    wait: Callable[[Sequence[Task]], Sequence[Task]],
    find: Callable[[Sequence[Task]], Collection[str]],
) -> bool:
    """Says where the parts are until all are there; `wait` returns those that are not yet, `find` the nodes they are
    on. False once nobody waits for them any more."""
    left, nodes = tasks, ""
    while rest := wait(left):
        if listen(folder / ASKED, (read_json(folder / ASKED) or {}).get("heartbeat", 0.0)).observed_seconds > UNASKED:
            return False
        found = ", ".join(sorted(find(rest)))
        nodes = found or (nodes if len(rest) < len(left) else "")  # between two parts
        left = rest
        if nodes:
            say(folder, "training", f"is computed on {nodes} of Ray")
        else:
            say(folder, "waiting", f"waits for a node with {describe_needs(1, 0)}")
    return True


def find_nodes(tasks: Sequence[Any]) -> set[str]:
    return {node_of(task.task_id().hex()) for task in tasks} - {""}


def say(folder: Path, state: Any, says: str) -> None:
    write_job(folder, Job(os.environ[JOB], state, says))


if __name__ == "__main__":
    read_settings()
    main(Path(sys.argv[1]))
