"""How long the paper's workloads with a decaying learning rate train: about twice the published steps.

A decay that goes on long after the goal is met cannot be a good one, so these workloads need a length of training for
each batch size. The paper's own are in the `study.json` files of its archive alone, but for one: 600,000 steps of
ResNet-50 on ImageNet at batch size 256, where 383,000 are published.
"""

from __future__ import annotations

import math

from batchlab.core.goal import Goal
from batchlab.published.goals import paper_goal
from batchlab.published.points import published_steps

_FACTOR = 2
_DIGITS = 2
_KNOWN = {("imagenet/resnet_50/nesterov_momentum", 256): 600_000}

_RESNET_50 = "imagenet/resnet_50/nesterov_momentum"
_STAND_INS = {  # half of ImageNet to an easier goal is in Figure 6, but relative to the smallest batch size
    "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum": _RESNET_50,
    "imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum": _RESNET_50,
    "cifar_10/resnet_8/sgd": "cifar_10/resnet_8/nesterov_momentum",
}
_SLOWER = {  # read off Figure 4, to about 10 %; at smaller batch sizes both optimizers need the same
    "cifar_10/resnet_8/sgd": {
        16: 18_500, 32: 10_200, 64: 6_300, 128: 4_500, 256: 3_900,
        512: 3_300, 1024: 3_100, 2048: 3_700, 4096: 3_300, 8192: 3_500,
    },
}  # fmt: skip


def lengths(name: str) -> dict[int, int]:
    """Return the steps after which trials end, by batch size; empty where nothing is published.

    >>> lengths("imagenet/resnet_50/nesterov_momentum")[8192]
    26000
    """
    return {size: _KNOWN.get((name, size), _rounded(_FACTOR * steps)) for size, steps in _published(name).items()}


def _published(name: str) -> dict[int, float]:
    stand_in = _STAND_INS.get(name, name)
    goal = paper_goal(stand_in)
    assert isinstance(goal, Goal)
    return {**published_steps(stand_in, goal), **_SLOWER.get(name, {})}


def _rounded(steps: float) -> int:
    """Return `steps` rounded up to two digits.

    >>> _rounded(12_812)
    13000
    """
    unit = 10 ** (math.floor(math.log10(steps)) - _DIGITS + 1)
    return int(math.ceil(steps / unit) * unit)
