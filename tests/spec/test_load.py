"""Spec files and built-in studies, with values set from the command line."""

from __future__ import annotations

import pytest

from batchlab.catalogue.paper import paper_names
from batchlab.core.confirmation import Confirm
from batchlab.errors import SpecError
from batchlab.spec.load import builtin_names, load_sweep

TOML = """
name = "mine"

[workload]
dataset = "digits"
model = "fc_128"
optimizer = "sgd"

[sweep]
batch_sizes = [4, 16]
trials = 3
max_steps = 50
goal = "val/classification_error < 0.03"

[search_space]
learning_rate = {min = 1e-3, max = 1.0, scale = "log"}
"""


@pytest.fixture
def write_spec(tmp_path):
    def write(text=TOML, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_the_built_in_studies_are_there():
    assert {"digits", "mnist-fc", "nqm"} <= set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_study_is_sound(name):
    sweep = load_sweep(name)

    assert sweep.name == name
    assert len(sweep.studies()) == len(sweep.search.batch_sizes) > 3


@pytest.mark.parametrize(
    ("name", "is_confirmed"),
    [
        ("digits", True),
        ("mnist-fc", True),
        ("mnist-cnn", True),
        ("fashion-cnn", True),
        ("nqm", False),  # exact: there are no seeds
        # The paper quotes the best of its trials.
        *((f"paper:{name}", False) for name in paper_names()),
    ],
)
def test_built_in_networks_are_confirmed_and_workloads_of_the_paper_are_not(name, is_confirmed):
    confirm = load_sweep(name).search.confirm

    assert confirm == (Confirm(seeds=6, points=3) if is_confirmed else None)


def test_a_spec_file_is_read(write_spec):
    sweep = load_sweep(write_spec())

    assert sweep.name == "mine"
    assert sweep.workload.name == "digits/fc_128/sgd"
    assert [study.batch_size for study in sweep.studies()] == [4, 16]


@pytest.mark.parametrize(
    ("setting", "read", "expected"),
    [
        ("sweep.trials=8", lambda sweep: sweep.search.trials, 8),
        ("sweep.trials = 8", lambda sweep: sweep.search.trials, 8),
        ("seed=3", lambda sweep: sweep.seed, 3),
        ("name=other", lambda sweep: sweep.name, "other"),
        ('name="other"', lambda sweep: sweep.name, "other"),
        ("workload.model=fc_256_256", lambda sweep: sweep.workload.model.name, "fc_256_256"),
        ("sweep.batch_sizes=[1, 2]", lambda sweep: sweep.search.batch_sizes, (1, 2)),
        ("sweep.protocol=full", lambda sweep: sweep.search.protocol, "full"),
        ("sweep.goal=val/cross_entropy_error < 0.2", lambda sweep: sweep.search.hardest_goal.threshold, 0.2),
        ('sweep.goal="val/cross_entropy_error < 0.2"', lambda sweep: sweep.search.hardest_goal.threshold, 0.2),
        ("sweep.evaluate={every = 5}", lambda sweep: sweep.search.evaluate.every, 5),
        ("engine.pack_size=4", lambda sweep: sweep.engine.pack_size, 4),
        ("engine.pack_size=auto", lambda sweep: sweep.engine.pack_size, "auto"),
        ("search_space.learning_rate.max=2.5", lambda sweep: sweep.search_space["learning_rate"].max, 2.5),
        (
            "search_space.learning_rate={values = [0.1]}",
            lambda sweep: sweep.search_space["learning_rate"].values,
            (0.1,),
        ),
        (
            'workload.dataset={name = "digits", train_examples = 100}',
            lambda sweep: sweep.workload.dataset.options,
            {"train_examples": 100},
        ),
    ],
)  # fmt: skip
def test_a_setting_changes_one_value(write_spec, setting, read, expected):
    assert read(load_sweep(write_spec(), [setting])) == expected


def test_a_setting_may_make_a_table_that_the_file_lacks(write_spec):
    text = TOML.replace("max_steps = 50\n", "")

    assert load_sweep(write_spec(text), ["sweep.max_steps=20", "engine.device=cpu"]).engine.device == "cpu"


def test_later_settings_win(write_spec):
    assert load_sweep(write_spec(), ["sweep.trials=8", "sweep.trials=9"]).search.trials == 9


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sweep.trials", '--set sweep.trials: write it as KEY=VALUE, such as "sweep.trials=8".'),
        ("workload.model.width=3", "--set workload.model.width=3: `model` is not a table."),
        ("sweep.trails=8", 'Unknown key "sweep.trails". Did you mean "sweep.trials"?'),
        ("sweep.trials=many", "`sweep.trials` = 'many'"),
        ("sweep.trials=0", "`sweep.trials` = 0"),
        ("sweep.goal=soon", '"soon" is no goal'),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(write_spec, setting, message):
    with pytest.raises(SpecError) as caught:
        load_sweep(write_spec(), [setting])

    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_no_toml_is_refused_with_its_place(write_spec):
    path = write_spec("name = \n[sweep")

    with pytest.raises(SpecError, match=rf"^{path}: not valid TOML: .*line 1"):
        load_sweep(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SpecError, match=f"^{path}: cannot be read"):
        load_sweep(str(path))


def test_what_is_neither_file_nor_study_is_refused_with_the_closest_study():
    with pytest.raises(SpecError) as caught:
        load_sweep("digit")

    assert str(caught.value).startswith('There is no file digit. Unknown study "digit". Did you mean "digits"? Known: ')


def test_a_setting_that_spoils_a_sound_spec_is_blamed(write_spec):
    path = write_spec(TOML)

    with pytest.raises(SpecError, match=f"^--set: {path}: `sweep.trials` = 0: give at least 1.$"):
        load_sweep(path, ["sweep.trials=0"])


def test_a_spec_that_is_wrong_by_itself_is_blamed_whatever_is_set(write_spec):
    path = write_spec(TOML.replace("fc_128", "fc_one"))

    with pytest.raises(SpecError, match=f'^{path}: Unknown model "fc_one"'):
        load_sweep(path, ["sweep.trials=4"])


def test_a_spec_cannot_extend_a_file(write_spec):
    path = write_spec('extends = "base.toml"')

    with pytest.raises(SpecError, match=r"A spec cannot extend a file\.$"):
        load_sweep(path)


def test_a_misspelt_extends_is_offered(write_spec):
    path = write_spec('extend = "digits"\nname = "mine"')

    with pytest.raises(
        SpecError, match=f'^{path}: Unknown key "extend". Did you mean "extends"\\? Known: at, engine, extends'
    ):
        load_sweep(path)


def test_a_setting_is_not_offered_what_only_a_file_can_say(write_spec):
    with pytest.raises(SpecError) as caught:
        load_sweep(write_spec(), ["extend=digits"])

    assert 'Unknown key "extend".' in str(caught.value)
    assert "extends" not in str(caught.value)


def test_a_folder_is_no_spec(tmp_path):
    with pytest.raises(SpecError, match=f"^{tmp_path} is a folder: give a spec file"):
        load_sweep(str(tmp_path))


@pytest.mark.parametrize(("setting", "meant"), [("trials=3", "sweep.trials"), ("model=fc_128", "workload.model")])
def test_a_setting_without_its_table_is_offered_it(write_spec, setting, meant):
    with pytest.raises(SpecError, match=f"^--set {setting}: Unknown key. Did you mean {meant}\\?$"):
        load_sweep(write_spec(), [setting])


def test_a_wrong_value_is_told_with_the_file_and_the_place(write_spec):
    path = write_spec(TOML.replace("trials = 3", "trials = -3"))

    with pytest.raises(SpecError, match=f"^{path}: `sweep.trials` = -3"):
        load_sweep(path)


def test_what_the_registries_refuse_is_told_with_the_file(write_spec):
    path = write_spec(TOML.replace("fc_128", "fc_one"))

    with pytest.raises(SpecError, match=f'^{path}: Unknown model "fc_one"'):
        load_sweep(path)


EXTENDS = """
extends = "paper:cifar_10/resnet_8/nesterov_momentum"
name = "mine"

[sweep]
trials = 7
evaluate = {every = 50}

[search_space]
learning_rate = {values = [0.1, 0.2]}
"""


@pytest.mark.parametrize("reference", ["paper:mnist/fc_1024/sgd", "small:mnist/fc_1024/sgd"])
def test_a_workload_of_the_catalogue_is_loaded_by_name(reference):
    sweep = load_sweep(reference, ["sweep.trials=3", "sweep.max_attempts=9"])

    assert sweep.name == reference.replace(":", "-").replace("/", "--")
    assert (sweep.search.trials, sweep.search.attempts) == (3, 9)


def test_a_spec_extends_another_key_by_key(write_spec):
    sweep = load_sweep(write_spec(EXTENDS))
    base = load_sweep("paper:cifar_10/resnet_8/nesterov_momentum")

    assert (sweep.name, sweep.search.trials, sweep.search.evaluate.every) == ("mine", 7, 50)
    assert sweep.search_space["learning_rate"].values == (0.1, 0.2)
    assert sweep.search_space["momentum"] == base.search_space["momentum"]
    assert sweep.search.batch_sizes == base.search.batch_sizes
    assert sweep.search.goal == base.search.goal
    assert sweep.workload == base.workload


def test_what_a_key_holds_is_replaced_as_a_whole(write_spec):
    """The base's `splits` do not stay behind in an `evaluate` of one's own."""
    assert load_sweep(write_spec(EXTENDS)).search.evaluate.splits == ("val",)


RESNET_8 = "paper:cifar_10/resnet_8/nesterov_momentum"


def test_what_is_extended_may_differ_for_each_batch_size(write_spec):
    sweep = load_sweep(write_spec(EXTENDS))

    assert (sweep.study(2).max_steps, sweep.study(8192).max_steps) == (260_000, 1_900)
    assert sweep.study(2).evaluation.every == 50


def test_batch_sizes_that_are_left_out_take_their_tables_along():
    sweep = load_sweep(RESNET_8, ["sweep.batch_sizes=[64, 100]"])

    assert (list(sweep.at), sweep.study(64).max_steps, sweep.study(100).max_steps) == ([64], 7_100, 200_000)


def test_what_is_said_later_of_all_batch_sizes_wins(write_spec):
    settings = ["sweep.max_steps=50", "search_space.learning_rate_decay_steps={values = [7]}"]
    extending = f'extends = "{RESNET_8}"\nname = "mine"\n[sweep]\nmax_steps = 50\n[search_space]\n'
    extending += "learning_rate_decay_steps = {values = [7]}"

    for sweep in (load_sweep(RESNET_8, settings), load_sweep(write_spec(extending))):
        assert {study.max_steps for study in sweep.studies()} == {50}
        assert sweep.study(64).search_space["learning_rate_decay_steps"].values == (7,)


def test_one_batch_size_can_still_be_changed():
    sweep = load_sweep(RESNET_8, ["sweep.max_steps=50", "at.64.max_steps=9"])

    assert (sweep.study(64).max_steps, sweep.study(128).max_steps) == (9, 50)


def test_a_table_of_a_batch_size_that_the_spec_never_had_is_refused(write_spec):
    with pytest.raises(SpecError, match=r"`at\.100`: 100 is not among `sweep\.batch_sizes`"):
        load_sweep(write_spec(EXTENDS + "[at.100]\nmax_steps = 9"))


def test_what_was_extended_is_no_part_of_the_sweep(write_spec):
    assert "extends" not in load_sweep(write_spec(EXTENDS)).plain()


def test_a_setting_is_on_top_of_what_is_extended(write_spec):
    assert load_sweep(write_spec(EXTENDS), ["sweep.trials=2"]).search.trials == 2


def test_a_built_in_study_can_be_extended(write_spec):
    sweep = load_sweep(write_spec('extends = "digits"\nname = "few"\n[sweep]\ntrials = 2'))

    assert (sweep.search.trials, sweep.workload.name) == (2, "digits/fc_128/nesterov_momentum")


def test_another_optimizer_leaves_a_metaparameter_that_must_go(write_spec):
    text = 'extends = "digits"\nname = "sgd"\n[workload]\noptimizer = "sgd"'

    with pytest.raises(SpecError, match='Unknown metaparameter of digits/fc_128/sgd "momentum"'):
        load_sweep(write_spec(text))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('"digit"', '`extends`: Unknown study "digit". Did you mean "digits"?'),
        ('"paper:cifar_10/resnet_8/sdg"', '`extends`: Unknown paper workload "cifar_10/resnet_8/sdg". Did you mean'),
        ('"other.toml"', '`extends`: Unknown study "other.toml".'),
        ("3", '`extends`: Unknown study "3".'),
    ],
)
def test_what_cannot_be_extended_is_refused_with_the_file(write_spec, base, message):
    path = write_spec(f"extends = {base}")

    with pytest.raises(SpecError) as caught:
        load_sweep(path)

    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_bare_name_of_the_paper_is_refused_with_the_way_out():
    with pytest.raises(SpecError, match="give paper:mnist/fc_1024/sgd or small:mnist/fc_1024/sgd"):
        load_sweep("mnist/fc_1024/sgd")


ALIASED = "small:mnist/fc_1024/sgd"


@pytest.mark.parametrize("setting", ["workload.model=fc_64", "workload.dataset.name=fashion_mnist"])
def test_an_alias_does_not_pass_to_another_workload(setting):
    with pytest.raises(SpecError, match="stands for .*: set workload.alias too"):
        load_sweep(ALIASED, [setting])

    assert load_sweep(ALIASED, [setting, "workload.alias=my/own/name"]).workload.name == "my/own/name"


def test_an_alias_stays_where_only_options_change():
    sweep = load_sweep(ALIASED, ["workload.dataset.train_examples=500"])

    assert sweep.workload.name == "small/mnist/fc_1024/sgd"
