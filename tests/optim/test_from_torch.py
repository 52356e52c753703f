"""PyTorch's own optimizers over rows: the same updates, and a state that can be stored."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.errors import InputError, SpecError
from batchlab.optim.base import Now
from batchlab.optim.layout import Layout
from batchlab.optim.registry import OPTIMIZERS, load_optimizer, optimizer_entry, register_class

LAYOUT = Layout(("kernel", "bias"), ((3, 2, 2, 2), (3,)))
NAMES = ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"]
SETTINGS = [(name, {}) for name in [*NAMES, "SGD"]]
SETTINGS += [("SGD", {"momentum": 0.9}), ("RMSprop", {"momentum": 0.5}), ("Adam", {"weight_decay": 0.1})]


def values_of(name, settings):
    defaults = {each.name: each.default for each in optimizer_entry(Named(name=f"torch.optim.{name}")).metaparameters}
    return {**defaults, "learning_rate": 0.05, **settings}


def columns(values):
    return {name: torch.full((2, 1), value, dtype=torch.float64) for name, value in values.items()}


def shaped(row):
    return [segment[0] for segment in LAYOUT.segments(row.unsqueeze(0)).values()]


@pytest.fixture
def drawn():
    random = torch.Generator().manual_seed(0)
    start = torch.randn(2, LAYOUT.size, generator=random, dtype=torch.float64)
    return start, torch.randn(6, 2, LAYOUT.size, generator=random, dtype=torch.float64)


def trained_by_torch(name, settings, start, gradients):
    rows = [[torch.nn.Parameter(each.clone()) for each in shaped(row)] for row in start]
    optimizers = [getattr(torch.optim, name)(row, lr=0.05, **settings) for row in rows]
    for step in gradients:
        for row, optimizer, gradient in zip(rows, optimizers, step, strict=True):
            for parameter, each in zip(row, shaped(gradient), strict=True):
                parameter.grad = each.clone()
            optimizer.step()
    return rows


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_rows_are_updated_as_pytorch_does_and_go_on_from_a_stored_state(name, settings, drawn):
    start, gradients = drawn
    parameters, now = start.clone(), columns(values_of(name, settings))
    first = load_optimizer(Named(name=f"torch.optim.{name}"), LAYOUT)
    state = first.init(parameters)
    for step in range(3):
        first.update(parameters, gradients[step].clone(), state, Now(step + 1, now))

    again = load_optimizer(Named(name=f"torch.optim.{name}"), LAYOUT)
    stored = again.init(parameters)
    for key, tensor in state.items():
        stored[key].copy_(tensor)
    for step in range(3, 6):
        again.update(parameters, gradients[step].clone(), stored, Now(step + 1, now))

    for row, expected in zip(parameters, trained_by_torch(name, settings, start, gradients), strict=True):
        for found, parameter in zip(shaped(row), expected, strict=True):
            torch.testing.assert_close(found, parameter.detach(), rtol=1e-6, atol=1e-8)


def test_its_numbers_are_metaparameters_with_their_defaults():
    found = {each.name: each.default for each in optimizer_entry(Named(name="torch.optim.NAdam")).metaparameters}

    assert found == {
        "learning_rate": None,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0.0,
        "momentum_decay": 0.004,
    }


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("torch.optim.Nadam", 'Unknown optimizer "torch.optim.Nadam". Did you mean "torch.optim.NAdam"?'),
        ("torch.optim.LBFGS", "cannot be used here: it evaluates a batch several times for one update"),
        ("torch.optim.lr_scheduler", "Unknown optimizer"),
        ("torch.optim.__builtins__", "Unknown optimizer"),
        ("os.system", 'Unknown optimizer "os.system"'),
    ],
)
def test_what_is_no_optimizer_of_pytorch_is_refused(name, sentence):
    with pytest.raises(SpecError) as caught:
        optimizer_entry(Named(name=name))

    assert sentence in str(caught.value)


def test_a_value_that_pytorch_refuses_is_one_sentence(drawn):
    optimizer = load_optimizer(Named(name="torch.optim.NAdam"), LAYOUT)
    parameters = drawn[0].clone()
    now = columns(values_of("NAdam", {"beta_1": 1.5}))

    with pytest.raises(SpecError, match="optimizer torch.optim.NAdam: Invalid beta parameter at index 0: 1.5"):
        optimizer.update(parameters, drawn[1][0], optimizer.init(parameters), Now(1, now))


class Lion(torch.optim.Optimizer):
    """The sign of an average of gradients, in PyTorch's form."""

    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                average = state.setdefault("average", torch.zeros_like(parameter))
                average.lerp_(parameter.grad, 1 - group["beta"])
                parameter.add_(average.sign(), alpha=-group["lr"])


class Counting(Lion):
    def step(self):
        self.param_groups[0]["beta"] *= 0.99
        super().step()


class Listing(Lion):
    def step(self):
        super().step()
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter]["seen"] = [1]


class Apart(Lion):
    """Keeps its velocities in a list of its own: each new one begins at zero."""

    def __init__(self, params, lr=1e-3, beta=0.9):
        super().__init__(params, lr, beta)
        self.velocities = [torch.zeros_like(each) for each in self.param_groups[0]["params"]]


class Late(Lion):
    """Begins to keep something with its second update."""

    def step(self):
        super().step()
        for parameter in self.param_groups[0]["params"]:
            if "count" in self.state[parameter]:
                self.state[parameter]["slow"] = parameter.detach().clone()
            self.state[parameter]["count"] = 1


class Asking(Lion):
    def step(self, closure):
        super().step()


class Needing(Lion):
    def __init__(self, params, lr, mu):
        super().__init__(params, lr, mu)


class Three(Lion):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.92, 0.99)):
        super().__init__(params, lr, betas[2])


@pytest.fixture
def registered():
    """Return a function that registers a class, and forget it afterwards."""
    before = dict(OPTIMIZERS)
    yield register_class
    OPTIMIZERS.clear()
    OPTIMIZERS.update(before)


def test_a_class_of_ones_own_trains_rows_by_its_name(registered, drawn):
    (start, gradients), name = drawn, registered(Lion)
    entry = optimizer_entry(Named(name=name))
    assert [(each.name, each.default) for each in entry.metaparameters] == [("learning_rate", None), ("beta", 0.9)]

    parameters, optimizer = start.clone(), load_optimizer(Named(name=name), LAYOUT)
    state, expected, averages = optimizer.init(parameters), start.clone(), torch.zeros_like(start)
    for step, gradient in enumerate(gradients):
        optimizer.update(
            parameters, gradient.clone(), state, Now(step + 1, columns({"learning_rate": 0.1, "beta": 0.5}))
        )
        averages = 0.5 * averages + 0.5 * gradient
        expected -= 0.1 * averages.sign()

    torch.testing.assert_close(parameters, expected)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Counting, r"optimizer Counting changes param_groups\[0\]\['beta'\] in an update: keep it in self.state"),
        (Listing, r"optimizer Listing keeps seen, a list: keep it in self.state\[parameter\], as a tensor or a number"),
        (Apart, r"optimizer Apart keeps tensors in self.velocities, which would be forgotten: keep it in self.state"),
        (Asking, r"optimizer Asking: step\(\) cannot be called: .* missing 1 required positional argument: 'closure'"),
        (Needing, r"optimizer Needing: .* missing 1 required positional argument: 'mu'"),
    ],
)
def test_a_class_that_keeps_what_would_be_forgotten_is_refused(registered, drawn, kind, sentence):
    optimizer = load_optimizer(Named(name=registered(kind)), LAYOUT)

    with pytest.raises(SpecError, match=sentence):
        optimizer.init(drawn[0])


def test_what_is_kept_from_a_later_update_on_is_told(registered, drawn):
    (start, gradients), name = drawn, registered(Late)
    parameters, optimizer = start.clone(), load_optimizer(Named(name=name), LAYOUT)
    state, now = optimizer.init(parameters), columns({"learning_rate": 0.1, "beta": 0.5})
    optimizer.update(parameters, gradients[0].clone(), state, Now(1, now))

    with pytest.raises(SpecError, match=r"optimizer Late keeps .*\.slow from a later update on: begin with it"):
        optimizer.update(parameters, gradients[1].clone(), state, Now(2, now))


def test_more_than_two_betas_are_numbered(registered):
    entry = optimizer_entry(Named(name=registered(Three)))

    assert [each.name for each in entry.metaparameters] == ["learning_rate", "beta_1", "beta_2", "beta_3"]
    assert [each.default for each in entry.metaparameters] == [None, 0.9, 0.92, 0.99]


def test_a_class_cannot_take_the_name_of_ours(registered):
    with pytest.raises(InputError, match="There is already an optimizer sgd: give your class another name"):
        registered(type("sgd", (Lion,), {}))
