"""The command reference as Markdown, read from the parser: it cannot be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import typer

MARKUP = re.compile(r"\[/?(?:bold|italic|dim)?\]")  # of rich, which prints the help


def reference() -> str:
    """Every command with its usage, arguments and options."""
    from tacit.cli.app import app

    root = typer.main.get_command(app)
    parts = [_described(path, command) for path, command in _walk("tacit", root)]
    return "\n\n".join(parts) + "\n"


def _walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The commands in the order of `tacit --help`, those of a group one by one."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _walk(f"{path} {name}", below)
    else:
        yield path, command


def _described(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = f"{path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"## {path}", _flowing(command.help or ""), f"```text\n{usage}\n```"]
    lines = [_line(p, context) for p in command.get_params(context) if _is_shown(p)]
    return "\n\n".join([*parts, "\n".join(lines)])


def _is_shown(parameter: click.Parameter) -> bool:
    return not getattr(parameter, "hidden", False) and "--help" not in parameter.opts


def _line(parameter: click.Parameter, context: click.Context) -> str:
    """A line of a list, which reads well on a phone too."""
    name = parameter.make_metavar(context)
    if isinstance(parameter, click.Option):
        flags = ", ".join([*parameter.opts, *parameter.secondary_opts])
        name = flags if parameter.is_flag else f"{flags} {name}"
    told = _flowing(getattr(parameter, "help", None) or "")
    return " ".join(part for part in (f"- `{name}`", told, _default(parameter)) if part)


def _default(parameter: click.Parameter) -> str:
    """What holds if the option is left out; nothing for flags that are off."""
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return f"Default: {shown}."
    if parameter.required:
        return "Required."
    value = getattr(parameter.default, "value", parameter.default)
    is_told = isinstance(value, str | int | float | Path) and type(value) is not bool
    return f"Default: `{value}`." if is_told else ""


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks and the markup of the terminal."""
    paragraphs = cleandoc(MARKUP.sub("", text)).split("\n\n")
    return "\n\n".join(" ".join(p.split()) for p in paragraphs)
