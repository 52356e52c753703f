"""What a look at a whole lab found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batchlab.errors import VERIFY, LabError


def problem_of(error: LabError) -> str:
    """Return what is wrong, without the way to `batchlab verify`: whoever reads it comes from there."""
    return str(error).replace(f" {VERIFY}", "")


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it was written."""

    path: Path
    """The file, or the folder of a study that is not its sweep's."""

    problem: str
    """One sentence, with the path."""

    follows: str
    """What it means for the lab."""

    is_unreadable: bool = False
    """Whether the system refused to read it: it may be sound."""


@dataclass
class Verification:
    """A lab, looked at."""

    lab: Path
    format: int | None
    """The lab's format; None where lab.json does not tell."""

    num_studies: int = 0
    num_files: int = 0
    num_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    foreign: list[Path] = field(default_factory=list)
    """Files that batchlab never writes: left alone."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "lab": str(self.lab),
            "format": self.format,
            "studies": self.num_studies,
            "files": self.num_files,
            "bytes": self.num_bytes,
            "findings": [
                {"path": str(finding.path), "problem": finding.problem, "follows": finding.follows}
                for finding in self.findings
            ],
            "foreign": [str(path) for path in self.foreign],
        }
