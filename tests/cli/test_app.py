import subprocess
import sys

import pytest
from quick import some_of

import tacit as package

COMMANDS = (
    *("demo", "init", "data", "plan", "train"),
    *("evaluate", "recommend", "report", "export", "reproduce", "audit"),
)


def test_help_teaches_every_command(tacit):
    answer = tacit("--help")
    assert answer.code == 0
    for command in COMMANDS:
        assert command in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(tacit, command):
    path = (command, "describe") if command == "data" else (command,)
    answer = tacit(*path, "--help")
    assert answer.code == 0
    assert "--json" in answer.out


def test_version(tacit):
    assert tacit("--version").out == f"tacit {package.__version__}\n"


@pytest.mark.parametrize("arguments", [("fly",), ("plan",), ("train", "--speed", "9")])
def test_a_wrong_call_exits_with_two(tacit, arguments):
    answer = tacit(*arguments)
    assert answer.code == 2
    assert answer.out == ""


def test_bad_input_is_one_message_and_exit_two(tacit, tmp_path):
    answer = tacit("plan", tmp_path / "none.toml")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err


def test_bad_input_under_json_is_a_document_too(tacit, tmp_path):
    answer = tacit("plan", tmp_path / "none.toml", "--json")
    assert answer.code == 2
    assert "no such file" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "command", some_of([["plan", "EXP"], ["--help"], ["data", "list"]], 1)
)
def test_starts_without_torch(command, experiment):
    """Bar 14 of the performance page, in part; `recommend` has its own test."""
    arguments = [str(experiment) if c == "EXP" else c for c in command]
    code = (
        "import sys\nfrom tacit.cli import main\n"
        f"sys.argv = ['tacit', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("comapre", "x"), "'compare'"),
        (("ledger", "sow"), "'show'"),
        (("compare", "x.toml", "--epsilon", "2"), "'--epsilons'"),
        (("audit", "grm"), "'gram'"),
    ],
)
def test_a_typo_gets_one_suggestion(tacit, words, meant):
    answer = tacit(*words)
    assert answer.code == 2
    assert answer.err.lower().count("did you mean") == 1
    assert meant in answer.err


def test_a_file_that_is_not_there_is_looked_for(tacit, experiment):
    answer = tacit("plan", experiment.parent / "exo.toml")
    assert answer.code == 2
    assert "there is no such file; did you mean 'exp.toml'?" in answer.err
