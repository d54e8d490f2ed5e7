"""Help texts that flow at any width, and one suggestion for a typing error.

Typer keeps the line ends of a docstring, which break again at the width of a terminal;
with recent versions of Click it drops what arguments are for, and suggests twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import click
import typer
from typer.core import TyperArgument, TyperCommand
from typer.models import ArgumentInfo


def tidy(app: typer.Typer) -> None:
    """Make the help texts of all commands flow, those of groups included."""
    for group in app.registered_groups:
        assert group.typer_instance is not None
        tidy(group.typer_instance)
    for command in app.registered_commands:
        assert command.callback is not None
        command.cls = _Command
        command.help = flowing(command.help or inspect.getdoc(command.callback) or "")


def flowing(text: str) -> str:
    r"""The text with line ends between paragraphs only.

    >>> flowing("One line\nand another.\n\nExample: tacit demo")
    'One line and another.\n\nExample: tacit demo'
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


def with_one_suggestion(error: click.ClickException) -> click.ClickException:
    """The error with the nearest name only, said once."""
    near = getattr(error, "possibilities", None)
    if not isinstance(error, click.UsageError) or not near:
        return error
    said = error.message.partition(" Did you mean")[0]  # Typer has added to it already
    return click.UsageError(f"{said} Did you mean {near[0]!r}?", ctx=error.ctx)


class _Command(TyperCommand):
    """A command whose arguments know what they are for."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(*names, **settings)
        told = _argument_helps(settings["callback"])
        for parameter in self.params:
            if isinstance(parameter, TyperArgument) and parameter.name in told:
                parameter.help = told[parameter.name]


def _argument_helps(callback: Callable[..., Any]) -> dict[str, str]:
    """What the function's arguments are for, as their annotations say."""
    hints = get_type_hints(inspect.unwrap(callback), include_extras=True)
    return {
        name: about.help
        for name, hint in hints.items()
        for about in getattr(hint, "__metadata__", ())
        if isinstance(about, ArgumentInfo) and about.help
    }
