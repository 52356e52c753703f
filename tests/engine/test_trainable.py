"""How the networks of several trials start."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from batchlab.engine.forward import make_forward
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem
from batchlab.engine.source import Split
from batchlab.models.fully_connected import FullyConnected
from batchlab.models.simple_cnn import SimpleCnn


class HalfForeign(FullyConnected):
    """A network of ours with a layer that PyTorch starts."""

    def __init__(self):
        super().__init__([3], (1, 2, 2), 5)
        self.dense_1 = nn.Linear(3, 5)


class Frozen(FullyConnected):
    """A network of ours that keeps a parameter as it is."""

    def __init__(self):
        super().__init__([3], (1, 2, 2), 5)
        self.dense_1.weight.requires_grad_(False)


NETWORKS = {
    "fully connected": lambda: FullyConnected([3], (1, 2, 2), 5),
    "simple CNN": lambda: SimpleCnn((2, 3), 4, (1, 4, 4), 5),
    "half foreign": HalfForeign,
    "frozen": Frozen,
    "foreign": lambda: nn.Linear(4, 5),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_trials_start_together_as_each_does_alone(name):
    examples = torch.zeros(2, 1, 4, 4)
    split = Split(examples, examples)
    problem = Problem(NETWORKS[name], OBJECTIVES["classification"], 5, split, {}, torch.device("cpu"))

    together = make_forward(problem.networks(7, [4, 0, 9]))

    for row, trial_id in enumerate([4, 0, 9]):
        network = problem.network(7, trial_id)
        for parameter, view in together.parameters.views.items():
            assert torch.equal(view[row], network.get_parameter(parameter)), parameter
        for buffer, values in together.buffers.items():
            assert torch.equal(values[row], network.state_dict()[buffer]), buffer


def test_a_small_network_of_ours_is_made_once():
    made = []
    examples = torch.zeros(2, 4)

    def make():
        made.append(FullyConnected([3], (4,), 5))
        return made[-1]

    problem = Problem(make, OBJECTIVES["classification"], 5, Split(examples, examples), {}, torch.device("cpu"))

    assert len(list(problem.networks(0, range(6)))) == 6
    assert len(made) == 1
