"""Questions in SQL over the finished studies of a lab."""

from __future__ import annotations

import pytest

from batchlab.store.archive.importer import import_archive
from batchlab.store.query import connect


@pytest.fixture
def lab(tree, tmp_path):
    import_archive(tree, tmp_path / "a lab's folder", processes=1)
    return tmp_path / "a lab's folder"


def test_steps_to_result_in_sql(lab):
    """The hand-made archive: the diverged trial 5 does not count, and at B = 4 the goal is met at step 0."""
    answer = connect(lab).execute(
        """
        select batch_size, min(step) from measurements join trials using (sweep, batch_size, trial_id)
        where status = 'COMPLETE' and "val/classification_error" < 0.3 group by batch_size order by batch_size
        """
    )

    assert answer.fetchall() == [(2, 20), (4, 0)]


def test_every_study_has_its_sweep_and_batch_size(lab):
    rows = connect(lab).execute("select sweep, batch_size, count(*) from measurements group by all order by all")

    assert rows.fetchall() == [
        ("mnist--simple_cnn_base--sgd", 2, 13),
        ("mnist--simple_cnn_base--sgd", 4, 4),
        ("mnist_subsets--mnist_6875--simple_cnn_base--sgd", 8, 4),
    ]
