from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from batchlab.core.workload import Named
from batchlab.data import image_cache, open_images, registry
from batchlab.errors import DataError

HEADER = "ImageID,Source,LabelName,Confidence\n"


@pytest.fixture
def root(tmp_path) -> Path:
    """Three trainable classes; in every split the images a (cat, dog), b (dog), c (none) and d (no file)."""
    folder = tmp_path / "open-images-v4"
    folder.mkdir()
    (folder / "classes-trainable.txt").write_text("/m/cat\n/m/dog\n/m/tree\n")
    for split in ("train", "validation", "test"):
        (folder / split).mkdir()
        for number, image_id in enumerate("abc"):
            packed = io.BytesIO()
            Image.new("RGB", (9, 8), (60 * number, 0, 0)).save(packed, "PNG")
            (folder / split / f"{image_id}.jpg").write_bytes(packed.getvalue())
        table(folder, split).write_text(
            HEADER
            + "b,verification,/m/dog,1\n"
            + "d,verification,/m/dog,1\n"
            + "a,verification,/m/cat,1\n"
            + "a,crowdsource-verification,/m/dog,1\n"
            + "a,verification,/m/tree,0\n"
            + "c,verification,/m/cat,0\n"
            + "c,verification,/m/rare,1\n"
        )
    return tmp_path


def table(folder: Path, split: str) -> Path:
    return folder / f"{split}-annotations-human-imagelabels.csv"


def load(root: Path, **options):
    return registry.load(Named(name="open_images_v4", image_size=7, **options), root)


def test_verified_labels_among_the_trainable_classes_hold(root):
    """c has no label that holds, d no file: both are left out."""
    dataset = load(root)

    assert dataset.task == "multi_label" and dataset.num_classes == 3
    assert dataset.input_shape == (3, 7, 7)
    for split in (dataset.train, dataset.val, dataset.test):
        assert split.labels.dtype == np.uint8
        assert split.labels.tolist() == [[1, 1, 0], [0, 1, 0]]
        assert split.inputs.shape == (2, 8, 8, 3)
        assert split.inputs[:, 0, 0, 0].tolist() == [0, 60]


def test_the_second_load_decodes_nothing(root, monkeypatch):
    load(root)
    monkeypatch.setattr(image_cache, "decode", lambda *_: pytest.fail("decoded again"))

    assert load(root).train.labels.tolist() == [[1, 1, 0], [0, 1, 0]]


def test_other_labels_for_the_same_images_are_read_again(root):
    load(root)
    with table(root / "open-images-v4", "train").open("a") as file:
        file.write("b,verification,/m/tree,1\n")

    assert load(root).train.labels.tolist() == [[1, 1, 0], [0, 1, 1]]


def test_a_subset_of_the_training_images_is_that_of_take(root):
    few = load(root, train_examples=1)

    expected = load(root).take(1)
    assert np.array_equal(few.train.inputs, expected.train.inputs)
    assert np.array_equal(few.train.labels, expected.train.labels)
    assert len(few.val) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,verification,/m/cat", r"train-annotations-human-imagelabels\.csv, line 9: 'a,verification,/m/cat' is not"),
        ("a,verification,/m/cat,2", r"line 9: .*,2' is not an image, a source, a label and a confidence of 0 or 1"),
    ],
)
def test_a_wrong_line_is_named(root, line, message):
    with table(root / "open-images-v4", "train").open("a") as file:
        file.write(line + "\n")

    with pytest.raises(DataError, match=message):
        load(root)


def test_a_table_without_its_header_is_named(root):
    path = table(root / "open-images-v4", "validation")
    path.write_text(path.read_text().removeprefix(HEADER))

    with pytest.raises(
        DataError, match=r"validation-annotations-human-imagelabels\.csv: its first line is not ImageID,"
    ):
        load(root)


@pytest.mark.parametrize("name", ["test-annotations-human-imagelabels.csv", "classes-trainable.txt"])
def test_a_missing_file_is_named(root, name):
    (root / "open-images-v4" / name).unlink()

    with pytest.raises(DataError, match=name):
        load(root)


def test_a_missing_folder_of_images_is_named(root):
    (root / "open-images-v4" / "validation").rename(root / "elsewhere")

    with pytest.raises(DataError, match=r"open-images-v4/validation cannot be listed: No such file"):
        load(root)


def test_a_split_without_labels_is_refused(root):
    table(root / "open-images-v4", "test").write_text(HEADER)

    with pytest.raises(DataError, match=r"test-annotations-\S+: no image in \S+/test has a label that holds"):
        load(root)


def test_a_class_that_stands_twice_is_refused(root):
    (root / "open-images-v4" / "classes-trainable.txt").write_text("/m/cat\n/m/cat\n")

    with pytest.raises(DataError, match=r"classes-trainable\.txt: 2 lines with 1 classes"):
        load(root)


def test_a_listed_image_takes_little_memory(root):
    """Of 4.5 million images, 250 bytes each are 1.1 GB."""
    folder = root / "many"
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number:016x}.jpg").write_bytes(b"x" * 300)

    tracemalloc.start()
    try:
        listed = open_images._list_images(folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [listed[0].name, listed[-1].name] == ["0000000000000000.jpg", "00000000000003e7.jpg"]
    assert peak / 1000 < 250


def test_its_state_follows_the_list_of_classes(root, tmp_path_factory):
    assert registry.data_state(Named(name="open_images_v4"), root) == "present"
    assert registry.data_state(Named(name="open_images_v4"), tmp_path_factory.mktemp("empty")) == "missing"
