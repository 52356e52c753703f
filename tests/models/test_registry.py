"""Models by name: what is built, what is refused and how that is said."""

from __future__ import annotations

import pytest

from batchlab.core.shapes import stored_shape
from batchlab.core.workload import Named
from batchlab.errors import SpecError
from batchlab.models.registry import build_model, check_model, is_packable


def shapes(name, **options):
    network = build_model(Named(name=name, **options), (1, 28, 28), 10)
    return [stored_shape(parameter.shape) for parameter in network.parameters()]


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
    "name", ["fc", "fc_", "fc_0", "fc_128_", "fc_-1", "fc_1e3", "fc_1234567", "fc_ 12", "resnet_9"]
)
def test_a_name_that_is_no_model_is_refused(name):
    with pytest.raises(SpecError, match=f'^Unknown model "{name}"'):
        check_model(Named(name=name))


def test_a_misspelt_name_is_told_the_right_one():
    with pytest.raises(SpecError) as caught:
        build_model(Named(name="simple_cnn_bas"), (1, 28, 28), 10)

    assert str(caught.value) == (
        'Unknown model "simple_cnn_bas". Did you mean "simple_cnn_base"? Known: fc_128, fc_1024_1024 (any widths), '
        "lstm, resnet_8, resnet_50, simple_cnn_base, simple_cnn_narrow, simple_cnn_wide, softmax_regression, "
        "transformer_base, transformer_narrow_and_shallow, transformer_shallow, transformer_wide, vgg_11."
    )


def test_an_unknown_option_is_refused_with_the_known_one():
    with pytest.raises(SpecError, match='option of model simple_cnn_base "dropuot". Did you mean "dropout"'):
        check_model(Named(name="simple_cnn_base", dropuot=0.5))


def test_a_model_without_options_takes_none():
    with pytest.raises(SpecError, match='option of model fc_128 "dropout"'):
        check_model(Named(name="fc_128", dropout=0.5))


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.0, 2, "half", float("nan")])
def test_a_dropout_that_is_no_share_is_refused(dropout):
    with pytest.raises(
        SpecError, match=f"dropout = {dropout!r} of model simple_cnn_wide must be at least 0 and below 1"
    ):
        check_model(Named(name="simple_cnn_wide", dropout=dropout))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "resnet_8",
            {"filters": [16, 32]},
            r"filters = \[16, 32\] of model resnet_8 must be a list of 3 whole numbers",
        ),
        ("vgg_11", {"filters": [1, 2, 3, 4, 5, 6, 7, 0]}, "of model vgg_11 must be a list of 8 whole numbers from 1"),
        ("vgg_11", {"hidden": 64.0}, "hidden = 64.0 of model vgg_11 must be a whole number from 1"),
        ("resnet_50", {"blocks": 3}, "blocks = 3 of model resnet_50 must be a list of 1 to 4 whole numbers from 1"),
        ("resnet_50", {"width": 0}, "width = 0 of model resnet_50 must be a whole number from 1"),
        ("resnet_50", {"ghost_size": True}, "ghost_size = True of model resnet_50 must be a whole number from 1"),
        ("transformer_base", {"layers": 0}, "layers = 0 of model transformer_base must be a whole number from 1"),
        ("transformer_wide", {"heads": "8"}, "heads = '8' of model transformer_wide must be a whole number from 1"),
        ("lstm", {"projection": 0.5}, "projection = 0.5 of model lstm must be a whole number from 1"),
    ],
)
def test_sizes_that_are_no_whole_numbers_are_refused(name, options, message):
    with pytest.raises(SpecError, match=message):
        check_model(Named(name=name, **options))


def test_lists_of_a_spec_file_reach_the_model():
    model = build_model(Named(name="resnet_8", filters=[2, 3, 4]), (3, 8, 8), 10)

    assert model.dense.weight.shape == (10, 4)


@pytest.mark.parametrize("name", ["softmax_regression", "fc_128", "fc_7_5", "simple_cnn_base"])
def test_small_models_train_in_packs(name):
    assert is_packable(Named(name=name))


@pytest.mark.parametrize("options", [{"width": 20}, {"width": 20, "heads": 8}, {"width": 20, "feed_forward": 8}])
def test_a_width_that_the_heads_cannot_share_is_refused(options):
    with pytest.raises(SpecError) as caught:
        check_model(Named(name="transformer_base", **options))

    assert str(caught.value) == "width = 20 of model transformer_base must be a multiple of heads = 8."


def test_heads_that_do_not_share_the_settled_width_are_refused():
    with pytest.raises(SpecError, match="width = 256 of model transformer_narrow_and_shallow must .* of heads = 3"):
        check_model(Named(name="transformer_narrow_and_shallow", heads=3))


def test_sizes_of_a_language_model_can_be_set():
    narrow = Named(name="transformer_shallow", width=20, heads=5, feed_forward=12, layers=1)
    transformer = build_model(narrow, (16,), 50)
    lstm = build_model(Named(name="lstm", embedding=4, hidden=6, projection=3), (16,), 50)

    assert transformer.embedding.weight.shape == (50, 20)
    assert transformer.layers[0].dense_0.weight.shape == (12, 20)
    assert len(transformer.layers) == 1
    assert lstm.recurrent.token_weight.shape == (4 * 6, 4)
    assert lstm.recurrent.projection_weight.shape == (3, 6)


@pytest.mark.parametrize("name", ["resnet_8", "resnet_50", "vgg_11", "transformer_base", "lstm"])
def test_large_models_train_one_by_one(name):
    assert not is_packable(Named(name=name))
