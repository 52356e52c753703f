"""The commands, and what a misuse of one is told."""

from __future__ import annotations

import os
from typing import Annotated, Any, NoReturn

import typer

from batchlab.cli import (
    archive,
    check,
    confirm,
    curve,
    figure,
    merge,
    plan,
    query,
    report,
    run,
    scaling,
    status,
    verify,
    workloads,
)
from batchlab.cli.endings import DEBUG_VARIABLE
from batchlab.cli.outputs import warn
from batchlab.errors import InputError, shown

app = typer.Typer(
    name="batchlab",
    help="How does the batch size change training, and where does it stop paying?",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
MOST_MESSAGE = 500
COMPLETION_VARIABLE = "_BATCHLAB_COMPLETE"
UsageError: Any = typer.BadParameter.__mro__[1]  # what every misuse of a command raises; typer gives it no public name
for command in (run.run, status.status, workloads.workloads, curve.curve, figure.figure, report.report):
    app.command()(command)
app.command()(confirm.confirm)
app.command()(scaling.scaling)
app.command()(plan.plan)
app.command()(merge.merge)
app.command()(verify.verify)
app.command()(query.query)
app.command()(check.check)
app.command("import")(archive.import_)
app.command()(archive.export)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import batchlab

        print(f"batchlab {batchlab.__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """How does the batch size change training, and where does it stop paying?"""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"


def execute(arguments: list[str]) -> int:
    """Run one command and return its exit code; every error but a misuse of the command is passed on."""
    group = typer.main.get_command(app)
    if COMPLETION_VARIABLE in os.environ:
        _complete(group, arguments)
    try:
        with group.make_context("batchlab", arguments) as context:
            group.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "batchlab"
        message = shown(" ".join(error.format_message().split()).rstrip("."), MOST_MESSAGE)
        warn(f"{message}{_hint(error, arguments)} (see `{command} --help`)")
        return InputError.exit_code
    return 0


def _complete(group: Any, arguments: list[str]) -> NoReturn:
    """Answer a shell that asks how a line may go on."""
    try:
        group.main(arguments, prog_name="batchlab")
    except (KeyError, ValueError) as error:
        asked = f"{COMPLETION_VARIABLE}={shown(os.environ[COMPLETION_VARIABLE])}"
        raise InputError(f"{asked} is for shells, and comes with variables that are not as they set them.") from error
    raise typer.Exit


def _hint(error: Any, arguments: list[str]) -> str:
    """Return the way to set a value of the spec, where an option that there is not has the name of one."""
    option, command = getattr(error, "option_name", ""), error.ctx.command if error.ctx else None
    if command is None or "settings" not in [parameter.name for parameter in command.params]:
        return ""
    from batchlab.core.sweep import spec_key

    key = spec_key(option.lstrip("-").replace("-", "_"))
    return f". Set it in the spec: --set {key}={shown(_value_of(option, arguments))}" if key else ""


def _value_of(option: str, arguments: list[str]) -> str:
    """Return the value that follows an option on the command line, or dots."""
    for argument, following in zip(arguments, [*arguments[1:], "..."], strict=True):
        if argument == option:
            return following
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return "..."
