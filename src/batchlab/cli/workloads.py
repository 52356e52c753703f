"""batchlab workloads: what can be run by name."""

from __future__ import annotations

from batchlab.cli.options import DataOption, JsonOption, print_json, print_table


def workloads(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List what can be run by name. Tells whether the data is here."""
    from batchlab.data.registry import data_state
    from batchlab.search.spec import builtin_names, load_sweep

    rows = []
    for name in builtin_names():
        sweep = load_sweep(name)
        rows.append(
            {
                "name": sweep.workload.name,
                "study": name,
                "goal": str(sweep.sweep.hardest_goal),
                "batch_sizes": list(sweep.sweep.batch_sizes),
                "trials": sweep.sweep.trials,
                "source": "builtin",
                "data": data_state(sweep.workload.dataset, data),
            }
        )
    if as_json:
        print_json(rows)
        return
    header = ["study", "data", "trials", "batch sizes", "goal", "workload"]
    print_table(header, [_cells(row) for row in rows])


def _cells(row: dict[str, object]) -> list[str]:
    sizes = row["batch_sizes"]
    assert isinstance(sizes, list)
    span = f"{sizes[0]} to {sizes[-1]} ({len(sizes)})"
    return [str(row["study"]), str(row["data"]), str(row["trials"]), span, str(row["goal"]), str(row["name"])]
