from __future__ import annotations

import tomllib

from batchlab.report.spec_text import spec_text


def test_a_spec_reads_back_as_it_was():
    spec = {
        "name": 'digits "A"',
        "seed": 0,
        "workload": {"dataset": {"name": "mnist", "train_examples": 10000}, "model": "fc_128"},
        "sweep": {"batch_sizes": [1, 2], "evaluate": {"growth": 1.03, "splits": ["val"]}, "full": True},
        "search_space": {"learning_rate": {"min": 1e-05, "max": 10.0, "scale": "log"}, "odd name": {"values": [0.0]}},
    }

    assert spec == tomllib.loads(spec_text(spec))


def test_an_empty_spec_is_empty_text():
    assert spec_text({}) == ""
