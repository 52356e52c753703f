"""batchlab workloads: what can be run by name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batchlab.cli.folded import folded
from batchlab.cli.options import DataOption, JsonOption, print_json, print_table, print_text, terminal_width

if TYPE_CHECKING:
    from batchlab.core.sweep import Sweep
    from batchlab.core.workload import Named


class Source(StrEnum):
    """Where a spec comes from."""

    BUILTIN = "builtin"
    PAPER = "paper"
    SMALL = "small"


_HEADINGS = {
    Source.BUILTIN: "Built-in studies",
    Source.PAPER: "The paper's workloads: its data, batch sizes, goals and numbers of trials",
    Source.SMALL: "Small siblings of the paper's workloads: minutes on two cores",
}

_HEADER = ["data", "trials", "batch sizes", "goal", "search space", "study"]


def workloads(
    source: Annotated[Source | None, typer.Option("--source", help="List only these.")] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what can be run by name. Tells whether the data is here."""
    from batchlab.spec.load import load_sweep

    shown = [each for each in Source if source in (None, each)]
    sweeps = [(each, study, load_sweep(study)) for each in shown for study in _studies(each)]
    rows = [_row(each, study, sweep, data) for each, study, sweep in sweeps]
    if as_json:
        print_json(rows)
        return
    for each in shown:
        print_text(_HEADINGS[each])
        print()
        print_table(_HEADER, [_cells(row) for row in rows if row["source"] == each])
        print()
    pairs = zip(sweeps, rows, strict=True)
    _print_missing({sweep.workload.dataset.name: row for (_, _, sweep), row in pairs if row["data"] == "missing"})


def _studies(source: Source) -> list[str]:
    from batchlab.catalogue.reference import references
    from batchlab.spec.load import builtin_names

    return builtin_names() if source == Source.BUILTIN else references(source)


def _row(source: Source, study: str, sweep: Sweep, data_dir: Path | None) -> dict[str, Any]:
    from batchlab.catalogue.paper import search_space_source
    from batchlab.data.registry import data_state

    name, dataset = sweep.workload.name, sweep.workload.dataset
    return {
        "name": name,
        "study": study,
        "goal": str(sweep.search.hardest_goal),
        "batch_sizes": list(sweep.search.batch_sizes),
        "trials": sweep.search.trials,
        "source": str(source),
        "search_space": search_space_source(name) if source == Source.PAPER else "ours",
        "data": data_state(dataset, data_dir),
        "place": _place(dataset),
    }


def _place(dataset: Named) -> str:
    """Return the files and folders that a dataset is read from, as they are to lie below `--data DIR`."""
    from batchlab.data.registry import facts

    known = facts(dataset)
    return known.place.rstrip(",") or ", ".join(f"{file.folders[0]}/{file.name}" for file in known.files)


def _cells(row: dict[str, Any]) -> list[str]:
    sizes = row["batch_sizes"]
    span = f"{sizes[0]} to {sizes[-1]} ({len(sizes)})"
    study = f"{row['study']}: {row['name']}" if row["source"] == Source.BUILTIN else row["study"]
    return [row["data"], str(row["trials"]), span, row["goal"], row["search_space"], folded(study, terminal_width())]


def _print_missing(rows: dict[str, dict[str, Any]]) -> None:
    """Print what to get for each dataset that is neither here nor can be fetched."""
    if rows:
        print_text("Missing data, to be put into a folder that --data names")
        width = terminal_width()
        print_table(["dataset", "files"], [[dataset, folded(row["place"], width)] for dataset, row in rows.items()])
