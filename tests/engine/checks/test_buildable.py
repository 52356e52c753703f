"""Networks that cannot be built, or fit into no memory, are found out without building them."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import torch

from batchlab.core.workload import Named
from batchlab.data import registry as data
from batchlab.engine.checks import buildable
from batchlab.engine.checks.buildable import check_buildable
from batchlab.engine.device import find_device
from batchlab.errors import SpecError
from batchlab.models.registry import build_model
from batchlab.spec.load import load_sweep

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _small_machine(monkeypatch):
    """What is too large must not depend on where the tests run."""
    monkeypatch.setattr("batchlab.engine.checks.buildable.machine_bytes", lambda: 16 << 30)


def check(model: str, dataset: str, *settings: str) -> None:
    base = "small:lm1b/lstm/nesterov_momentum" if "name='lm1b" in dataset else "small:cifar_10/resnet_8/sgd"
    sweep = load_sweep(base, [f"workload.model={model}", "workload.alias=a/b/c", *settings])
    known = data.facts(Named.model_validate(load_toml(dataset)))
    check_buildable(sweep.studies()[-1], known, CPU)


def load_toml(value: str) -> object:
    import tomllib

    return tomllib.loads(f"value = {value}")["value"]


@pytest.mark.parametrize(
    ("model", "dataset", "settings", "words"),
    [
        ("'fc_999999_999999'", "'mnist'", (), "has 1,000,7"),
        ("'simple_cnn_base'", "{name='tiny_imagenet', image_size=1}", (), "cannot be built for inputs of 3x1x1"),
        ("'simple_cnn_base'", "{name='tiny_imagenet', image_size=3}", (), "cannot be built for inputs of 3x3x3"),
        ("{name='resnet_8', filters=[1000000, 1000000, 1000000]}", "'cifar_10'", (), "take a smaller one"),
        ("{name='vgg_11', hidden=1000000}", "'cifar_10'", (), "take a smaller one"),
        ("{name='lstm', embedding=1000000, hidden=1000000, projection=8}", "{name='lm1b'}", (), "take a smaller one"),
        ("{name='transformer_base', layers=1000, feed_forward=1000000}", "{name='lm1b'}", (), "take a smaller one"),
        ("'transformer_base'", "{name='lm1b', num_tokens=65536, vocabulary_size=1000000}", (), "of 1 examples of lm1b"),
        ("'fc_4096_4096'", "'mnist'", ("engine.pack_size=100", "sweep.trials=100"), "in packs of 100"),
    ],
)
def test_a_network_that_cannot_be_built_is_refused_and_takes_no_memory(model, dataset, settings, words):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(SpecError) as caught:
        check(model, dataset, *settings)

    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@pytest.mark.parametrize(
    ("model", "dataset"),
    [
        ("'fc_128'", "'mnist'"),
        ("'softmax_regression'", "'mnist'"),
        ("'simple_cnn_wide'", "'mnist'"),
        ("'resnet_8'", "'cifar_10'"),
        ("'vgg_11'", "'cifar_10'"),
        ("'resnet_50'", "'imagenet'"),
        ("'lstm'", "{name='lm1b'}"),
        ("'transformer_wide'", "{name='lm1b'}"),
    ],
)
def test_the_networks_of_the_paper_can_be_built(model, dataset):
    check(model, dataset)


@pytest.mark.parametrize("model", ["fc_128", "fc_256_256_256", "softmax_regression", "simple_cnn_base"])
def test_zeros_tell_of_a_small_network_what_empty_shapes_do(model, monkeypatch):
    """To a twentieth: convolutions on the processor keep some tensors in a layout of their own."""
    facts = data.facts(Named(name="mnist"))
    with buildable.META:
        network = build_model(Named(name=model), facts.input_shape, 10)
    of_zeros = buildable._bytes_kept(network, facts)
    monkeypatch.setattr("batchlab.engine.checks.buildable.SMALL_NETWORK", 0)

    assert of_zeros == pytest.approx(buildable._bytes_kept(network, facts), rel=0.05)


def test_a_small_network_is_checked_without_the_compiler_of_pytorch():
    """It takes two seconds to import, and every run would."""
    code = (
        "import sys, torch; from batchlab.data import registry as data; from batchlab.spec.load import load_sweep\n"
        "from batchlab.engine.checks.buildable import check_buildable\n"
        "sweep = load_sweep('digits', [])\n"
        "check_buildable(sweep.studies()[-1], data.facts(sweep.workload.dataset), torch.device('cpu'))\n"
        "data.load(sweep.workload.dataset, None)\n"
        "sys.exit(', '.join({'torch._dynamo', 'sympy', 'sklearn'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_microbatch_that_fits_into_no_memory_is_refused():
    settings = ("engine.microbatch_size=4000", "sweep.batch_sizes=[4000]", "sweep.max_examples=9000")

    with pytest.raises(SpecError, match=r"of 4,000 examples of imagenet at once.*`engine.microbatch_size`"):
        check("'resnet_8'", "'imagenet'", *settings)


@pytest.mark.parametrize("name", ["meta", "abacus", "cuda:99", "cpu:x", "", "\x1b[31m", "mps", "xla"])
def test_a_device_on_which_nothing_can_be_computed_is_refused(name):
    with pytest.raises(SpecError, match="is no device that PyTorch finds here") as caught:
        find_device(name)

    assert str(caught.value).isprintable()
