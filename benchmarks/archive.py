"""How fast a published archive is imported and questioned, against the authors' way with pandas.

    python benchmarks/make_archive.py OUT --scale 0.05
    python benchmarks/archive.py OUT/batch_science [--out FILE.json]

The authors' way reads a CSV file for each trial with pandas, joins them by workload, sorts and takes the first row
beyond the goal. Here it reads every trial once. Ours imports the tree into a new lab; then a new process answers the
same question, the steps to result of every workload without and with a step and an example budget, from the lab.
Under a budget a batch size takes part only where its study trained that long.
Each part runs in a process of its own, one after the other, on the same tree; the answers are compared.
Then the commands that users call are timed on the lab, each with its processor time and its peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from batchlab.analysis import apply_example_budget, apply_step_budget, steps_to_result
from batchlab.core.result import StudyResult
from batchlab.published.goals import paper_goal
from batchlab.store.lab import Lab
from batchlab.store.status import sweep_statuses

NUM_TRIALS = 100
MAX_STEPS = 20_000
MAX_EXAMPLES = 20_000_000
PARTS = ("pandas", "import", "query")


BUDGETS: dict[str, Callable[[StudyResult], StudyResult | None]] = {
    "all": lambda study: study,
    "steps": lambda study: apply_step_budget(study, MAX_STEPS),
    "examples": lambda study: apply_example_budget(study, MAX_EXAMPLES),
}


def key(workload: str, batch_size: int, budget: str) -> str:
    return f"{workload}/{batch_size} {budget}"


# The authors' way ------------------------------------------------------------------------------------------


def pandas_workload(folder: Path) -> tuple[Any, dict[int, list[int]], dict[int, int]]:
    """Return the table of one workload, indexed by batch size, trial and step; its first complete trials and the step
    to which it trained, by batch size."""
    import pandas as pd

    tables, complete, end_steps = {}, {}, {}
    for study in sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name)):
        train_steps = json.loads((study / "study.json").read_text())["train_steps"]
        chosen, lengths = [], []
        for trial in sorted((path for path in study.iterdir() if path.is_dir()), key=lambda path: int(path.name)):
            metadata = json.loads((trial / "metadata.json").read_text())
            if metadata["status"] == "COMPLETE":
                lengths.append(metadata["steps"])
                chosen.append(metadata["trial_id"])
            tables[int(study.name), metadata["trial_id"]] = pd.read_csv(trial / "measurements.csv", index_col="step")
        complete[int(study.name)] = chosen[:NUM_TRIALS]
        end_steps[int(study.name)] = train_steps or min(lengths, default=0)
    return pd.concat(tables, names=["batch_size", "trial_id"]), complete, end_steps


def pandas_steps(table: Any, metric: str, threshold: float, is_lower_better: bool) -> dict[int, int]:
    rows = table[table[metric] < threshold] if is_lower_better else table[table[metric] > threshold]
    rows = rows.reset_index().sort_values(["step", "trial_id"])
    return {int(size): int(group["step"].iloc[0]) for size, group in rows.groupby("batch_size")}


LEAST: dict[str, Callable[[int], float]] = {
    "all": lambda batch_size: 0,
    "steps": lambda batch_size: MAX_STEPS,
    "examples": lambda batch_size: MAX_EXAMPLES / batch_size,
}


def pandas_part(tree: Path, lab: Path) -> dict[str, Any]:
    load_seconds, compute_seconds, num_rows, answers = 0.0, 0.0, 0, {}
    for folder in sorted({path.parent.parent for path in tree.glob("**/study.json")}):
        started = time.perf_counter()
        table, complete, end_steps = pandas_workload(folder)
        load_seconds += time.perf_counter() - started
        num_rows += len(table)
        started = time.perf_counter()
        workload = str(folder.relative_to(tree))
        goal = paper_goal(workload)
        assert goal is not None
        wanted = {(size, trial_id) for size, trial_ids in complete.items() for trial_id in trial_ids}
        table = table[[pair in wanted for pair in zip(*map(table.index.get_level_values, (0, 1)), strict=True)]]
        step, size = table.index.get_level_values("step"), table.index.get_level_values("batch_size")
        kept = {"all": table, "steps": table[step <= MAX_STEPS], "examples": table[step * size <= MAX_EXAMPLES]}
        for budget, rows in kept.items():
            found = pandas_steps(rows, goal.metric, goal.threshold, goal.is_lower_better)
            for batch_size, end_step in end_steps.items():
                if end_step >= LEAST[budget](batch_size):
                    answers[key(workload, batch_size, budget)] = found.get(batch_size)
        compute_seconds += time.perf_counter() - started
    return {"load_seconds": load_seconds, "compute_seconds": compute_seconds, "rows": num_rows, "answers": answers}


# Ours ------------------------------------------------------------------------------------------------------


def import_part(tree: Path, lab: Path) -> dict[str, Any]:
    from batchlab.store.archive.importer import import_archive

    started = time.perf_counter()
    outcome = import_archive(tree, lab)
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in lab.rglob("*") if path.is_file())
    rows = sum(study.num_measurements for study in outcome.studies)
    return {"seconds": seconds, "rows": rows, "lab_bytes": size, "rejected": len(outcome.rejected)}


def query_part(tree: Path, lab: Path) -> dict[str, Any]:
    started = time.perf_counter()
    store, answers = Lab.open(lab), {}
    for sweep in store.sweeps():
        assert sweep.goal is not None
        for study in store.results(sweep, [sweep.goal.metric]).results:
            for budget, within in BUDGETS.items():
                if cut := within(study):
                    steps = steps_to_result(cut, sweep.goal, NUM_TRIALS).steps
                    answers[key(sweep.workload, study.batch_size, budget)] = steps
    return {"seconds": time.perf_counter() - started, "answers": answers}


def time_commands(lab: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Return what each command takes; the curve is of the workload with most rows."""
    largest = max(sweep_statuses(Lab.open(lab)), key=lambda status: status.measurements).workload
    commands = {
        "status": ["status"],
        f"curve {largest}": ["curve", largest],
        "figure paper-1": ["figure", "paper-1", "--out", str(folder)],
        "figure paper-all": ["figure", "paper-all", "--out", str(folder)],
        "report": ["report", "--out", str(folder / "report.html")],
    }
    return {name: time_command([*command, "--lab", str(lab)]) for name, command in commands.items()}


def time_command(arguments: list[str]) -> dict[str, float]:
    """Return the wall and processor seconds and the peak of memory of one command."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "batchlab", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"batchlab {' '.join(arguments)} failed")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": cpu_seconds,
        "peak_bytes": 1024 * usage.ru_maxrss,
    }


def run_part(part: str, tree: Path, lab: Path) -> dict[str, Any]:
    """Run one part in a process of its own; return what it says, with its peak memory."""
    command = [sys.executable, __file__, str(tree), "--part", part, "--lab", str(lab)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)  # type: ignore[no-any-return]


def peak_bytes() -> int:
    """Return the largest memory of this process, or of one of its children if that is larger."""
    return 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path, help="an unpacked archive, the folder above the datasets")
    parser.add_argument("--out", type=Path, default=Path("archive.json"))
    parser.add_argument("--lab", type=Path, help="keep the lab here")
    parser.add_argument("--skip-pandas", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        result = {"pandas": pandas_part, "import": import_part, "query": query_part}[options.part](
            options.tree, options.lab
        )
        print(json.dumps({**result, "peak_bytes": peak_bytes()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        lab = options.lab or Path(folder) / "lab"
        parts = [part for part in PARTS if part != "pandas" or not options.skip_pandas]
        results = {part: run_part(part, options.tree, lab) for part in parts}
        report(results)
        commands = time_commands(lab, Path(folder))
    for name, taken in commands.items():
        print(f"{taken['seconds']:8.1f} s, {taken['cpu_seconds']:.1f} s of CPU,", end=" ")
        print(f"peak {taken['peak_bytes'] / 2**20:,.0f} MiB: batchlab {name}")
    from batchlab.run.environment import environment  # here, since it is slow to import and the parts do not use it

    for part in results.values():
        part.pop("answers", None)
    options.out.write_text(json.dumps({"environment": environment(), **results, "commands": commands}, indent=1) + "\n")


def report(results: dict[str, dict[str, Any]]) -> None:
    ours, query = results["import"], results["query"]
    print(f"rows {ours['rows']:,}; lab {ours['lab_bytes'] / 1e6:,.0f} MB; rejected {ours['rejected']}")
    print(f"import  {ours['seconds']:8.1f} s, peak {ours['peak_bytes'] / 2**20:,.0f} MiB in one process")
    peak = query["peak_bytes"] / 2**20
    print(f"query   {query['seconds']:8.2f} s, peak {peak:,.0f} MiB, {len(query['answers'])} answers")
    if "pandas" in results:
        pandas = results["pandas"]
        whole = pandas["load_seconds"] + pandas["compute_seconds"]
        print(f"pandas  {pandas['load_seconds']:8.1f} s load, {pandas['compute_seconds']:.1f} s compute,", end=" ")
        print(f"peak {pandas['peak_bytes'] / 2**20:,.0f} MiB; answers equal: {pandas['answers'] == query['answers']}")
        print(f"import is {pandas['load_seconds'] / ours['seconds']:.1f} times as fast as pandas reads the tree once;")
        print(f"the question is answered {whole / query['seconds']:.0f} times as fast as load and compute.")


if __name__ == "__main__":
    main()
