"""The place where trainings run, as the settings say."""

from __future__ import annotations

from engine.budget import budget
from engine.training.cluster.ray_jobs import RayJobs
from engine.training.launch import warm_trainer
from engine.training.launch.launcher import Launcher
from engine.training.launch.processes import Processes


def choose_launcher() -> Launcher:
    """Returns the cluster of `LOUPE_RAY_ADDRESS`, or this machine where none is set."""
    return RayJobs() if budget.ray_address else Processes(warm=warm_trainer.shared)
