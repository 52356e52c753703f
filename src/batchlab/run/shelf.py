"""Where a pack's checkpoints are kept while it trains: the business of whoever holds the lab."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from batchlab.core.study import Study
from batchlab.store.checkpoint import Checkpoint, read_checkpoint
from batchlab.store.pack_check import check_checkpoint
from batchlab.store.pack_folder import PackFolder
from batchlab.store.seal import damaged


@dataclass(frozen=True)
class Shelf:
    """The place of one pack in a lab. It can be handed to a process that shares the disk, and to no other."""

    folder: PackFolder
    name: str
    study: Study
    loop: Path | None = None
    """The folder of a trial of a loop of the user's own, which keeps its own checkpoints there."""

    @property
    def path(self) -> Path:
        """Where the checkpoint lies."""
        return self.folder.checkpoint_path(self.name)

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in the place of the one before."""
        self.folder.save_checkpoint(self.name, checkpoint, self.study.fingerprint)

    def read(self, trial_ids: Collection[int]) -> Checkpoint | None:
        """Return the last checkpoint of the pack of these trials, None where there is none.

        DamagedError where it is not as it was written, or not of this very pack.
        """
        saved = read_checkpoint(self.path, self.study.fingerprint)
        if saved is None:
            return None
        check_checkpoint(self.path, saved, self.study)
        if set(trial_ids) != set(np.unique(saved["rows.trial_id"]).tolist()):
            raise damaged(self.path, "it is of other trials")
        return saved
