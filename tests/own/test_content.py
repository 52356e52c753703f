"""Batches of the user's own: whoever changes one changes no other."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict

import pytest
import torch

from batchlab.own.content import copied, moved


class MovesItself(UserDict):
    """As some libraries' batches do."""

    def to(self, device):
        self.data = {name: each.to(device) for name, each in self.data.items()}
        return self


@pytest.mark.parametrize("kind", [dict, OrderedDict, UserDict, MovesItself, lambda content: defaultdict(list, content)])
@pytest.mark.parametrize("change", [copied, lambda content: moved(content, torch.device("cpu"))])
def test_a_mapping_of_any_kind_is_copied_and_stays_what_it_is(kind, change):
    held = kind({"x": torch.ones(2), "name": "a"})

    batch = change(held)
    batch["x"] = batch["x"] / 2
    batch.pop("name")

    assert type(batch) is type(held)
    assert held["x"].tolist() == [1, 1]
    assert held["name"] == "a"
