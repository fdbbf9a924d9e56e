"""The tasks that networks are trained for: built-in ones, and tasks of your own.

``table.py`` has the built-in tasks, ``task.py`` defines what a task is, and ``derived.py`` and
``registry.py`` create and register further ones.
"""

from fsjax.tasks.classes_or_numbers import kind_of_target
from fsjax.tasks.derived import like
from fsjax.tasks.losses import roc_auc, weighted_mean
from fsjax.tasks.registry import BUILDERS, get_task, name_of, register
from fsjax.tasks.table import (
    COUPLED_BATCH,
    SUPERVISED,
    TABLE,
    TASKS,
    loss,
    metrics,
    row_metrics,
)
from fsjax.tasks.task import Objective, Outputs, Target, Task, Words

__all__ = [
    "BUILDERS",
    "COUPLED_BATCH",
    "Objective",
    "Outputs",
    "SUPERVISED",
    "TABLE",
    "TASKS",
    "Target",
    "Task",
    "Words",
    "get_task",
    "kind_of_target",
    "like",
    "loss",
    "metrics",
    "name_of",
    "register",
    "roc_auc",
    "row_metrics",
    "weighted_mean",
]
