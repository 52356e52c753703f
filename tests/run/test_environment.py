"""Where results were computed."""

from __future__ import annotations

import json
import socket

import numpy as np

from batchlab.run.environment import environment, package_versions


def test_the_environment_can_be_stored_and_names_what_results_depend_on():
    facts = environment()

    assert json.loads(json.dumps(facts)) == facts
    assert facts["host"] == socket.gethostname()
    assert facts["cpu"]
    assert facts["cores"] >= 1
    assert facts["packages"]["numpy"] == np.__version__


def test_packages_that_are_absent_are_left_out():
    assert set(package_versions()) <= {"batchlab", "torch", "numpy", "scipy", "pyarrow", "scikit-learn"}
