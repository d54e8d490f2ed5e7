"""The command line: parse, call, print. Nothing is computed here."""

from tacit.cli.app import main

__all__ = ["main"]
