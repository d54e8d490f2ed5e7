"""What the system refuses is one sentence with a remedy, by command and by function.

No traceback for a place that is a file or that nobody may write to, for too little
memory or for a missing extra. What is asked of each command is asked of its function.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import EXPERIMENT, Answer

import tacit as library
from tacit.cli import main
from tacit.errors import MissingExtra, TacitError

COMMANDS = {
    "train": ("train", "exp.toml", "--out", "OUT"),
    "release": ("release", "exp.toml", "--out", "OUT"),
    "compare": ("compare", "exp.toml", "--seeds", "1", "--out", "OUT"),
    "demo": ("demo", "--out", "OUT"),
    "export": ("export", "run", "--out", "OUT"),
    "reproduce": ("reproduce", "fmf_ldp", "--scale", "smoke", "--out", "OUT"),
}
FILES = {
    "init": ("init", "table.csv", "--user", "who", "--item", "what", "--out", "OUT"),
}
FUNCTIONS: dict[str, Callable[[Path], object]] = {
    "train": lambda out: library.train("exp.toml", out=out),
    "compare": lambda out: library.compare("exp.toml", seeds=1, out=out),
    "save": lambda out: library.Run.open("run").save(out),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, an experiment and a finished run, to work in."""
    folder = tmp_path_factory.mktemp("refused")
    lines = [
        f"user {p},item {(p * 7 + i * i) % 15}" for p in range(40) for i in range(9)
    ]
    (folder / "table.csv").write_text("who,what\n" + "\n".join(lines) + "\n")
    (folder / "exp.toml").write_text(EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        library.train("exp.toml", out="run")
    return folder


@pytest.fixture(autouse=True)
def _there(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("TACIT_CACHE", str(place / "cache"))


@pytest.fixture
def tacit(capsys, monkeypatch):
    """The command line, called in this process."""

    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        written = capsys.readouterr()
        return Answer(int(stop.value.code or 0), written.out, written.err)

    return call


def said(answer: Answer) -> str:
    """The one sentence of a command that was refused."""
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    assert answer.err.count("error: ") == 1, answer.err
    return answer.err.partition("error: ")[2]


def filled(words: tuple[str, ...], out: Path) -> list[str]:
    return [str(out) if word == "OUT" else word for word in words]


def a_file(folder: Path) -> Path:
    (folder / "file").write_text("mine")
    return folder / "file"


def below_a_file(folder: Path) -> Path:
    return a_file(folder) / "run"


def too_long(folder: Path) -> Path:
    return folder / ("n" * 300)


PLACES = {"a file": a_file, "below a file": below_a_file, "too long": too_long}
REMEDIES = ("choose", "change", "is it right", "make room")


@pytest.mark.parametrize("where", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_into_a_place_that_cannot_be(tacit, tmp_path, words, where):
    out = where(tmp_path)
    told = said(tacit(*filled(words, out)))
    assert any(word in told for word in REMEDIES), told
    assert where is too_long or "file" in told, told
    assert not (tmp_path / "file").exists() or a_file(tmp_path).read_text() == "mine"


@pytest.mark.parametrize("where", [below_a_file, too_long])
@pytest.mark.parametrize("words", FILES.values(), ids=FILES)
def test_a_file_at_a_place_that_cannot_be(tacit, tmp_path, words, where):
    told = said(tacit(*filled(words, where(tmp_path))))
    assert any(word in told for word in REMEDIES), told


@pytest.mark.parametrize("where", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_into_a_place_that_cannot_be(tmp_path, call, where):
    with pytest.raises(TacitError) as caught:
        call(where(tmp_path))
    assert any(word in str(caught.value) for word in REMEDIES), caught.value


@pytest.fixture
def read_only(monkeypatch, tmp_path):
    """A folder that nobody may write to; root is stopped in no other way."""
    locked, mkdir, open_ = tmp_path / "locked", os.mkdir, os.open
    locked.mkdir()

    def refused(path: object) -> None:
        if str(path).startswith(str(locked)):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def no_folder(path, *rest, **how):
        refused(path)
        return mkdir(path, *rest, **how)

    def no_file(path, flags, *rest, **how):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refused(path)
        return open_(path, flags, *rest, **how)

    monkeypatch.setattr(os, "mkdir", no_folder)
    monkeypatch.setattr(os, "open", no_file)
    return locked / "run"


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_where_nobody_may_write(tacit, read_only, words):
    told = said(tacit(*filled(words, read_only)))
    assert "may not read or write there; change that, or choose another" in told


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_where_nobody_may_write(read_only, call):
    with pytest.raises(OSError, match="choose another place") as caught:
        call(read_only)
    assert isinstance(caught.value, TacitError)
    assert caught.value.errno == errno.EACCES


def test_too_little_memory_is_an_error_of_ours(monkeypatch, tmp_path):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8.00 GiB")

    monkeypatch.setattr("tacit.experiment.training.assemble", greedy)
    with pytest.raises(MemoryError, match=r"8\.00 GiB; use fewer items") as caught:
        library.train("exp.toml", out=tmp_path / "run")
    assert isinstance(caught.value, TacitError)


EXTRAS = {
    "tables": (
        "pyarrow",
        lambda: library.train({"user": ["a", "a"], "item": ["x", "y"]}),
    ),
    "pandas": ("pandas", lambda: library.Run.open("run").rows().to_pandas()),
    "baselines": (
        "implicit",
        lambda: library.compare("exp.toml", seeds=1, baselines=["ials"]),
    ),
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_is_named(monkeypatch, extra):
    module, call = EXTRAS[extra]
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=rf"{module}.*\[{extra}\]"):
        call()


PARQUET = ("init", "t.parquet", *("--user", "a", "--item", "b"), "--out", "OUT")


@pytest.mark.parametrize(
    ("module", "extra", "words"),
    [
        ("onnx", "onnx", ("export", "run", "--out", "OUT")),
        ("starlette", "serve", ("serve", "recommendations", "run", "--port", "0")),
        (
            "pyarrow",
            "tables",
            ("init", "t.parquet", *("--user", "a"), "--item", "b", "--out", "OUT"),
        ),
    ],
)
def test_a_command_names_a_missing_extra(
    tacit, monkeypatch, tmp_path, place, module, extra, words
):
    (place / "t.parquet").write_bytes(b"PAR1")
    for name in [n for n in sys.modules if n.startswith("tacit.service")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [n for n in sys.modules if n.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    told = said(tacit(*filled(words, tmp_path / "out")))
    assert f"[{extra}]" in told
    assert "pip install" in told
