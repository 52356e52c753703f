from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from batchlab.core.workload import Named
from batchlab.data import image_cache, registry, synsets
from batchlab.errors import DataError, SpecError

CLASSES = ["n00000003", "n00000001", "n00000002", "n00000004"]
"""In the order of the devkit's numbers 1 to 4, which is not that of the names."""

PER_CLASS = 26


def image(label: int, number: int = 0) -> bytes:
    """A small image whose red tells its class and whose green tells its number."""
    packed = io.BytesIO()
    Image.new("RGB", (8, 8), (50 * label, 8 * number, 0)).save(packed, "PNG")
    return packed.getvalue()


def label_of(wnid: str) -> int:
    return sorted(CLASSES).index(wnid)


@pytest.fixture
def official(tmp_path) -> Path:
    """4 classes of 26 images in folders, 8 flat validation images with the devkit's files."""
    root = tmp_path / "imagenet"
    for wnid in CLASSES:
        (root / "train" / wnid).mkdir(parents=True)
        for number in range(PER_CLASS):
            (root / "train" / wnid / f"{wnid}_{number}.JPEG").write_bytes(image(label_of(wnid), number))
    (root / "val").mkdir()
    for number in range(8):
        path = root / "val" / f"ILSVRC2012_val_0000000{number + 1}.JPEG"
        path.write_bytes(image(label_of(CLASSES[number % 4]), number))
    data = root / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n2\n3\n4\n1\n2\n3\n4\n")
    kinds = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")]
    synsets = np.array([(number, wnid, "thing") for number, wnid in enumerate(CLASSES, start=1)], dtype=kinds)
    savemat(data / "meta.mat", {"synsets": synsets})
    return tmp_path


def ground_truth(root: Path) -> Path:
    return root / "imagenet" / "ILSVRC2012_devkit_t12" / "data" / "ILSVRC2012_validation_ground_truth.txt"


def load(root: Path, name: str = "imagenet", **options):
    return registry.load(Named(name=name, image_size=7, **options), root)


def red_and_green(examples) -> set[tuple[int, int]]:
    return {(int(red), int(green)) for red, green in examples.inputs[:, 0, 0, :2]}


def pack(path: Path, folder: Path, is_compressed: bool = False) -> None:
    with tarfile.open(path, "w:gz" if is_compressed else "w") as tar:
        for member in sorted(folder.iterdir()):
            tar.add(member, arcname=f"{folder.name}/{member.name}" if is_compressed else member.name)
    shutil.rmtree(folder)


def test_every_image_has_the_label_of_its_sorted_wnid(official):
    dataset = load(official)

    assert dataset.num_classes == 4
    for split in (dataset.train, dataset.val, dataset.test):
        assert split.inputs.dtype == np.uint8 and split.inputs.shape[1:] == (8, 8, 3)
        assert split.labels.dtype == np.int64
        assert np.array_equal(split.inputs[:, 0, 0, 0], 50 * split.labels)
    assert dataset.val.labels.tolist() == [2, 0, 1, 3, 2, 0, 1, 3]


def test_test_images_are_held_out_of_the_training_images_in_the_published_share(official):
    """104 training images x 50,045 / 1,281,167 = 4.06."""
    dataset = load(official)

    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == [100, 8, 4]
    assert not red_and_green(dataset.train) & red_and_green(dataset.test)
    assert len(red_and_green(dataset.train) | red_and_green(dataset.test)) == 104


def test_the_view_is_a_square_of_the_asked_size_and_the_map_an_eighth_larger(official):
    dataset = registry.load(Named(name="imagenet", image_size=28), official)

    assert dataset.train.inputs.shape[1:] == (32, 32, 3)
    assert dataset.input_shape == (3, 28, 28)
    assert dataset.view is not None and dataset.view.mean == (0.485, 0.456, 0.406)
    assert registry.facts(Named(name="imagenet")).input_shape == (3, 224, 224)
    assert registry.facts(Named(name="imagenet", image_size=28)).input_shape == (3, 28, 28)


def test_the_second_load_decodes_nothing(official, monkeypatch):
    load(official)
    monkeypatch.setattr(image_cache, "decode", lambda *_: pytest.fail("decoded again"))

    load(official)


def test_tars_are_read_in_place_and_give_the_same_arrays(official):
    folders = load(official)
    root = official / "imagenet"
    for wnid in CLASSES:
        pack(root / "train" / f"{wnid}.tar", root / "train" / wnid)
    pack(root / "ILSVRC2012_img_train.tar", root / "train")
    pack(root / "ILSVRC2012_img_val.tar", root / "val")
    (root / "devkit").mkdir()
    shutil.move(root / "ILSVRC2012_devkit_t12", root / "devkit" / "ILSVRC2012_devkit_t12")
    with tarfile.open(root / "ILSVRC2012_devkit_t12.tar.gz", "w:gz") as tar:
        tar.add(root / "devkit" / "ILSVRC2012_devkit_t12", arcname="ILSVRC2012_devkit_t12")
    shutil.rmtree(root / "devkit")

    tars = load(official)

    assert registry.data_state(Named(name="imagenet"), official) == "present"
    for one, other in ((folders.train, tars.train), (folders.val, tars.val), (folders.test, tars.test)):
        assert np.array_equal(one.inputs, other.inputs) and np.array_equal(one.labels, other.labels)


def test_validation_images_may_lie_in_class_folders(official):
    root = official / "imagenet"
    shutil.rmtree(root / "val")
    shutil.rmtree(root / "ILSVRC2012_devkit_t12")
    for wnid in CLASSES:
        (root / "val" / wnid).mkdir(parents=True)
        (root / "val" / wnid / "1.JPEG").write_bytes(image(label_of(wnid)))

    assert load(official).val.labels.tolist() == [0, 1, 2, 3]


def test_half_of_the_images_of_every_class_is_the_same_each_time(official):
    full, half = load(official), load(official, "imagenet_half_images")

    counts = [-(-count // 2) for count in np.bincount(full.train.labels)]
    assert np.bincount(half.train.labels).tolist() == counts
    assert red_and_green(half.train) < red_and_green(full.train)
    assert np.array_equal(half.test.inputs, full.test.inputs) and len(half.val) == 8
    shutil.rmtree(official / "cache")
    assert np.array_equal(load(official, "imagenet_half_images").train.inputs, half.train.inputs)


def test_half_of_the_classes_keeps_all_their_images_and_counts_labels_from_zero(official):
    full, half = load(official), load(official, "imagenet_half_classes")

    kept = sorted({red // 50 for red, _ in red_and_green(half.val)})
    assert half.num_classes == 2 and len(kept) == 2 and len(half.val) == 4
    for whole, part in ((full.train, half.train), (full.val, half.val), (full.test, half.test)):
        assert red_and_green(part) == {pair for pair in red_and_green(whole) if pair[0] // 50 in kept}
        assert np.array_equal(part.labels, np.searchsorted(kept, part.inputs[:, 0, 0, 0] // 50))


def test_only_the_wanted_training_images_are_decoded_and_they_are_those_of_take(official, cache):
    few = load(official, train_examples=5)

    (path,) = (cache / "images").glob("imagenet-train-*")
    assert len(np.load(path, mmap_mode="r")) == 5
    assert few.num_classes == 4
    assert np.array_equal(few.train.inputs, load(official).take(5).train.inputs)


def test_more_training_images_than_the_files_hold_are_refused(official):
    with pytest.raises(DataError, match="`train_examples` = 101 of dataset imagenet: the files hold only 100"):
        load(official, train_examples=101)


@pytest.mark.parametrize("value", [0, 2000, 28.0, "28", True])
def test_image_size_must_be_a_whole_number_in_range(value):
    with pytest.raises(SpecError, match=f"image_size = {value!r} of dataset tiny_imagenet must be .* from 1 to 1,024"):
        registry.facts(Named(name="tiny_imagenet", image_size=value))


# Damage


def test_a_missing_line_of_the_ground_truth_is_named(official):
    ground_truth(official).write_text("1\n2\n3\n4\n1\n2\n3\n")

    with pytest.raises(DataError, match=r"validation_ground_truth\.txt: 7 lines for 8 validation images"):
        load(official)


@pytest.mark.parametrize("label", ["0", "5", "x"])
def test_a_label_out_of_range_is_named_with_its_line(official, label):
    ground_truth(official).write_text(f"1\n2\n{label}\n4\n1\n2\n3\n4\n")

    with pytest.raises(
        DataError, match=rf"ground_truth\.txt, line 3: label {label} is not among the 4 of \S+meta\.mat"
    ):
        load(official)


def test_a_missing_devkit_is_named(official):
    shutil.rmtree(official / "imagenet" / "ILSVRC2012_devkit_t12")

    with pytest.raises(DataError, match=r"ground_truth\.txt is missing\. Put ILSVRC2012_devkit_t12\.tar\.gz"):
        load(official)


def pack_devkit(root: Path) -> Path:
    """Pack the devkit, not compressed: a changed letter in it stays a letter."""
    packed = root / "imagenet" / "ILSVRC2012_devkit_t12.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=0) as tar:
        tar.add(root / "imagenet" / "ILSVRC2012_devkit_t12", arcname="ILSVRC2012_devkit_t12")
    shutil.rmtree(root / "imagenet" / "ILSVRC2012_devkit_t12")
    return packed


def test_a_packed_devkit_in_which_one_label_changed_is_named(official):
    packed = pack_devkit(official)
    packed.write_bytes(packed.read_bytes().replace(b"1\n2\n3\n4\n1\n", b"1\n2\n3\n4\n2\n"))

    with pytest.raises(DataError, match=r"devkit_t12\.tar\.gz: the gzip file is truncated or damaged"):
        load(official)


def test_a_folder_in_place_of_a_packed_file_is_named(official):
    ground_truth(official).unlink()
    ground_truth(official).mkdir()
    pack_devkit(official)

    with pytest.raises(DataError, match=r"devkit_t12\.tar\.gz: \S+ground_truth\.txt is no file of at most"):
        load(official)


def test_a_packed_devkit_without_the_labels_is_named(official):
    ground_truth(official).unlink()
    pack_devkit(official)

    with pytest.raises(DataError, match=r"ground_truth\.txt is missing\. Put ILSVRC2012_devkit_t12\.tar\.gz"):
        load(official)


def test_a_damaged_table_of_classes_is_named(official):
    path = ground_truth(official).parent / "meta.mat"
    version_73 = path.read_bytes()[:124] + b"\0\2" + path.read_bytes()[126:]

    for content in (b"\0" * 200, b"", version_73):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"meta\.mat: it holds no table of synsets"):
            load(official)


def test_a_reader_that_dies_of_a_table_is_survived(monkeypatch):
    monkeypatch.setattr(synsets, "_command", lambda: [sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"])

    with pytest.raises(ValueError, match="its reader died of it"):
        synsets.read_synsets(b"")


def test_an_empty_class_folder_is_named(official):
    (official / "imagenet" / "train" / "n00000009").mkdir()

    with pytest.raises(DataError, match=r"train/n00000009: the class folder holds no images"):
        load(official)


def test_a_truncated_class_tar_inside_the_training_tar_is_refused(official):
    root = official / "imagenet"
    for wnid in CLASSES:
        pack(root / "train" / f"{wnid}.tar", root / "train" / wnid)
    os.truncate(root / "train" / "n00000002.tar", 5 * 512)
    pack(root / "ILSVRC2012_img_train.tar", root / "train")

    with pytest.raises(DataError, match=r"ILSVRC2012_img_train\.tar: n00000002\.tar: the tar is truncated or damaged"):
        load(official)


def test_a_missing_validation_set_is_named(official):
    shutil.rmtree(official / "imagenet" / "val")

    with pytest.raises(DataError, match=r"imagenet: neither ILSVRC2012_img_val\.tar nor val/ is there"):
        load(official)


def test_without_files_it_says_what_to_put_where(tmp_path):
    for name in ("imagenet", "imagenet_half_images", "imagenet_half_classes", "tiny_imagenet"):
        assert registry.data_state(Named(name=name), tmp_path) == "missing"
        with pytest.raises(DataError, match=f"The files of {name} are missing: put .* --data DIR"):
            registry.load(Named(name=name), tmp_path)


def test_a_folder_of_other_training_images_is_not_imagenet(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.jpg").write_bytes(image(0))

    assert registry.data_state(Named(name="imagenet"), tmp_path) == "missing"
    with pytest.raises(DataError, match="neither"):
        registry.load(Named(name="imagenet"), tmp_path)


# Tiny ImageNet


def test_the_subset_of_tiny_imagenet_is_read_from_its_tar(shared_data):
    """20 classes of 100 and 50 images; 2,000 x 50,045 / 1,281,167 = 78.1 are held out."""
    dataset = registry.load(Named(name="tiny_imagenet", image_size=7), shared_data)

    assert registry.data_state(Named(name="tiny_imagenet"), shared_data) == "present"
    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == [1_922, 1_000, 78]
    counts = np.bincount(dataset.train.labels) + np.bincount(dataset.test.labels, minlength=20)
    assert counts.tolist() == [100] * 20
    assert np.bincount(dataset.val.labels).tolist() == [50] * 20


@pytest.fixture
def tiny(tmp_path) -> Path:
    root = tmp_path / "tiny-imagenet-200"
    for wnid in CLASSES:
        (root / "train" / wnid / "images").mkdir(parents=True)
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text("boxes")
        for number in range(10):
            (root / "train" / wnid / "images" / f"{wnid}_{number}.JPEG").write_bytes(image(label_of(wnid), number))
    (root / "val" / "images").mkdir(parents=True)
    lines = [f"val_{number}.JPEG\t{wnid}\t0\t0\t5\t5\n" for number, wnid in enumerate(CLASSES)]
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    for number, wnid in enumerate(CLASSES):
        (root / "val" / "images" / f"val_{number}.JPEG").write_bytes(image(label_of(wnid)))
    (root / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in CLASSES))
    return tmp_path


def test_a_folder_of_tiny_imagenet_is_read(tiny):
    dataset = load(tiny, "tiny_imagenet")

    assert dataset.val.labels.tolist() == [2, 0, 1, 3]
    assert np.array_equal(dataset.train.inputs[:, 0, 0, 0], 50 * dataset.train.labels)
    assert (len(dataset.train), len(dataset.test)) == (38, 2)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("wnids.txt", "n00000001\nn00000009\n", r"class n00000009 of wnids\.txt has no training images"),
        (
            "val/val_annotations.txt",
            "val_0.JPEG\tn00000003\t0\t0\t0\t0\n",
            r"val_annotations\.txt: it has no line for val_1",
        ),
        (
            "val/val_annotations.txt",
            "".join(f"val_{number}.JPEG\tn00000009\t0\t0\t0\t0\n" for number in range(4)),
            r"val_annotations\.txt: val/images/val_0\.JPEG is of class n00000009, which has no training images",
        ),
    ],
)
def test_labels_of_tiny_imagenet_that_do_not_fit_are_named(tiny, file, text, message):
    (tiny / "tiny-imagenet-200" / file).write_text(text)

    with pytest.raises(DataError, match=message):
        load(tiny, "tiny_imagenet")


def test_a_missing_list_of_labels_is_named(tiny):
    (tiny / "tiny-imagenet-200" / "val" / "val_annotations.txt").unlink()

    with pytest.raises(DataError, match=r"tiny-imagenet-200: val/val_annotations\.txt is missing"):
        load(tiny, "tiny_imagenet")


def test_a_truncated_tar_of_tiny_imagenet_is_named(shared_data, tmp_path):
    path = tmp_path / "tiny-imagenet-20x100.tar"
    shutil.copyfile(shared_data / "tiny-imagenet-subset" / path.name, path)
    os.truncate(path, 3_000_000)

    with pytest.raises(DataError, match=r"tiny-imagenet-20x100\.tar: the tar is truncated or damaged"):
        load(tmp_path, "tiny_imagenet")
