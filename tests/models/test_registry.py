"""Models by name: what is built, what is refused and how that is said."""

from __future__ import annotations

import pytest

from batchlab.core.workload import Named
from batchlab.errors import SpecError
from batchlab.models.registry import build_model, check_model


def shapes(name, **options):
    return [shape.shape for shape in build_model(Named(name=name, **options), (1, 28, 28), 10).shapes.values()]


def test_widths_are_read_from_the_name():
    assert shapes("fc_300_100") == [(300, 784), (300,), (100, 300), (100,), (10, 100), (10,)]


def test_softmax_regression_has_no_hidden_layer():
    assert shapes("softmax_regression") == [(10, 784), (10,)]


def test_simple_cnn_base_is_the_papers():
    assert shapes("simple_cnn_base") == [
        *[(32, 5, 5, 1), (32,), (64, 5, 5, 32), (64,)],
        *[(1024, 7 * 7 * 64), (1024,), (10, 1024), (10,)],
    ]


def test_dropout_is_off_unless_asked_for():
    assert build_model(Named(name="simple_cnn_base"), (1, 28, 28), 10).dropout == 0
    assert build_model(Named(name="simple_cnn_base", dropout=0.4), (1, 28, 28), 10).dropout == 0.4
    assert build_model(Named(name="fc_128"), (1, 28, 28), 10).dropout == 0


@pytest.mark.parametrize(
    "name", ["fc", "fc_", "fc_0", "fc_128_", "fc_-1", "fc_1e3", "fc_1234567", "fc_ 12", "resnet_8"]
)
def test_a_name_that_is_no_model_is_refused(name):
    with pytest.raises(SpecError, match=f'^Unknown model "{name}"'):
        check_model(Named(name=name))


def test_a_misspelt_name_is_told_the_right_one():
    with pytest.raises(SpecError) as caught:
        build_model(Named(name="simple_cnn_bas"), (1, 28, 28), 10)

    assert str(caught.value) == (
        'Unknown model "simple_cnn_bas". Did you mean "simple_cnn_base"? Known: fc_1024_1024 (any widths), fc_128, '
        "simple_cnn_base, simple_cnn_narrow, simple_cnn_wide, softmax_regression."
    )


def test_an_unknown_option_is_refused_with_the_known_one():
    with pytest.raises(SpecError, match='option of model simple_cnn_base "dropuot". Did you mean "dropout"'):
        check_model(Named(name="simple_cnn_base", dropuot=0.5))


def test_a_model_without_options_takes_none():
    with pytest.raises(SpecError, match='option of model fc_128 "dropout"'):
        check_model(Named(name="fc_128", dropout=0.5))


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.0, 2, "half", float("nan")])
def test_a_dropout_that_is_no_share_is_refused(dropout):
    with pytest.raises(SpecError, match=f"dropout = {dropout} of model simple_cnn_wide must be at least 0 and below 1"):
        check_model(Named(name="simple_cnn_wide", dropout=dropout))
