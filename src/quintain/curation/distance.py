"""How far the tasks of an evaluation are from those of training, facet by facet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import jensenshannon

from quintain.interface.tasks import Task, tag_value


@dataclass(frozen=True, slots=True)
class Distance:
    """One facet.

    Attributes:
        apart: Jensen-Shannon distance (root of the divergence to base 2): 0 for equal shares, 1 for none in common.
        new: share of the evaluation's tasks whose value no training task has.
    """

    apart: float
    new: float


def _tag(prefix: str) -> Callable[[Task], str]:
    return lambda task: tag_value(task.tags, prefix) or ""


FACETS: Mapping[str, Callable[[Task], str]] = {
    "entities": lambda task: task.cluster,
    "templates": lambda task: task.template,
    "hops": _tag("hops:"),
    "collections": lambda task: task.cluster.partition(":")[0] if ":" in task.cluster else task.world,
    "languages": _tag("lang:"),
}
"""What is compared. A cluster named `collection:entity` says which collection it is from."""


def distances(training: Sequence[Task], evaluation: Sequence[Task]) -> dict[str, Distance]:
    """Distance of each facet.

    Args:
        training: what was trained on; at least one task.
        evaluation: what is measured; at least one task.
    """
    return {
        name: _distance([facet(task) for task in training], [facet(task) for task in evaluation])
        for name, facet in FACETS.items()
    }


def _distance(training: Sequence[str], evaluation: Sequence[str]) -> Distance:
    one, two = Counter(training), Counter(evaluation)
    names = sorted(one | two)
    apart = jensenshannon(*(np.array([count[name] for name in names], float) for count in (one, two)), base=2)
    new = sum(count for name, count in two.items() if name not in one) / len(evaluation)
    return Distance(round(float(apart), 4), round(new, 4))
