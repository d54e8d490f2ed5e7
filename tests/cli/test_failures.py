"""What is no bug is one sentence and exit code 2; under --json one document."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from quick import some_of

from tacit.cli import app, failures
from tacit.cli.failures import failure_of
from tacit.errors import BadRun


def spoken(answer, *parts):
    """One sentence, no traceback, code 2."""
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    assert answer.err.count("error: ") == 1
    for part in parts:
        assert part in answer.err


def told(answer, kind, *parts):
    """The same as one JSON document."""
    assert answer.code == 2, answer.err
    assert answer.json.keys() == {"error"}
    assert answer.json["error"].keys() == {"kind", "message"}
    assert answer.json["error"]["kind"] == kind
    for part in parts:
        assert part in answer.json["error"]["message"]


OF_THE_DISK = [
    *(errno.ENOSPC, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.ELOOP),
    errno.EXDEV,  # has no sentence of its own
]


@pytest.mark.parametrize("number", some_of(OF_THE_DISK, 1))
@pytest.mark.parametrize("name", ["experiment.toml", "ledger.json", "result.json"])
def test_a_disk_that_says_no(tacit, experiment, tmp_path, monkeypatch, number, name):
    """While any file is put into its place; root can be stopped in no other way."""
    replace = os.replace

    def refuse(old, new):
        if os.path.basename(new) == name:
            raise OSError(number, os.strerror(number), old, None, new)
        replace(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    run = tmp_path / "run"
    spoken(tacit("train", experiment, "--out", run), f"{run / name}: ")
    assert not [*run.rglob(".tacit-draft-*")]
    answer = tacit("train", experiment, "--out", run, "--resume", "--json")
    told(answer, "OSError", str(run / name))
    monkeypatch.setattr(os, "replace", replace)
    assert tacit("train", experiment, "--out", run, "--resume").code == 0


def test_places_that_cannot_be(tacit, experiment, tmp_path):
    (tmp_path / "file").touch()
    spoken(tacit("train", experiment, "--out", tmp_path / "file"), str(tmp_path))
    spoken(tacit("train", experiment, "--out", tmp_path / "file" / "run"), "no folder")
    spoken(tacit("train", experiment, "--out", tmp_path / ("n" * 300)), "too long")
    spoken(tacit("init", tmp_path, "--user", "a", "--item", "b"))
    table = tmp_path / "table.csv"
    columns = ("--user", "who", "--item", "what")
    place = tmp_path / "folder"
    place.mkdir()
    answer = tacit("init", table, *columns, "--out", place, "--force")
    spoken(answer, "it is a folder, and a file is needed")


SCRIPT = "import sys\nfrom tacit.cli import main\nsys.argv[0] = 'tacit'\nmain()\n"


def program(*arguments, **how):
    """The command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        capture_output="stdout" not in how,
        stderr=subprocess.PIPE if "stdout" in how else None,
        text=True,
        **how,
    )


def test_a_disk_that_is_really_full(experiment, tmp_path):
    """The kernel refuses to let any file grow beyond two thousand bytes."""

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    run = tmp_path / "run"
    # Python itself would leave cut bytecode behind, which no later process can read.
    whole = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    call = ("train", experiment, "--out", run, "--json")
    done = program(*call, preexec_fn=little_room, env=whole)
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "OSError"
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.rglob(".tacit-draft-*")]


def test_an_output_that_is_full_or_gone():
    with open("/dev/full", "w") as full:
        done = program("data", "list", "--json", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "error: the disk is full; make room, then give the same " + (
        "command again\n"
    )
    read, write = os.pipe()
    os.close(read)
    done = program("data", "list", "--json", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (failures.UNHEARD, "")


def test_too_little_memory(tmp_path):
    """The address space ends before the relations of so many items fit."""
    code = (
        "import resource, sys, numpy, tacit.cli.app as app\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "most = used + 2**28\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "app.app = lambda standalone_mode: numpy.zeros(2**30)\n"
        "sys.argv = ['tacit', '--json']\n"
        "app.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "MemoryError"
    assert "Unable to allocate 8.00 GiB" in error["message"]
    assert done.stderr.startswith("error: there is not enough memory: ")


def test_torch_says_it_in_its_own_way():
    said = (
        "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
    )
    assert failure_of(RuntimeError(said)).kind == "MemoryError"
    assert failure_of(RuntimeError("something else")) is None


@pytest.mark.parametrize(
    "error", [KeyError("x"), ZeroDivisionError(), AssertionError()]
)
def test_a_bug_keeps_its_traceback(tacit, monkeypatch, error):
    def bug(standalone_mode):
        raise error

    monkeypatch.setattr(app, "app", bug)
    with pytest.raises(type(error)):
        tacit("plan", "x")


def test_interrupted(tacit, experiment, tmp_path, monkeypatch):
    from tacit.experiment import training

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "assemble", stop)
    answer = tacit("train", experiment, "--out", tmp_path / "run", "--json")
    assert answer.code == 130
    assert answer.json["error"]["kind"] == "Interrupted"
    assert answer.err.endswith("interrupted\n")
    assert "Traceback" not in answer.err


def test_a_wrong_call_is_a_document_too(tacit):
    told(tacit("train", "--speed", "9", "--json"), "BadUsage", "--speed")


def test_an_error_of_ours_names_its_kind(tacit, tmp_path):
    told(tacit("export", tmp_path, "--json"), "BadRun", "holds no run")
    assert failure_of(BadRun("x")).kind == "BadRun"


# damaged files

READS = {
    "experiment.toml": [
        ("report",),
        ("evaluate",),
        ("recommend", "--user", "user 3"),
    ],
    "ledger.json": [("report",), ("export",), ("evaluate",)],
    "result.json": [("report",), ("evaluate",)],
    "privacy-card.json": [("report",), ("export",)],
    "model.json": [("report",), ("export",), ("recommend", "--history", "item 1")],
    "model.safetensors": [("export",), ("recommend", "--history", "item 1")],
    "metrics.jsonl": [("report",)],
    "checkpoint/state.safetensors": [("evaluate",)],
    "inputs.json": [("resume",)],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run, with the table that it was trained on, to be copied and damaged."""
    from cli.conftest import EXPERIMENT

    from tacit.cli import main

    place = tmp_path_factory.mktemp("trained")
    lines = [
        f"user {p},item {(p * 7 + i * i) % 15}" for p in range(40) for i in range(9)
    ]
    (place / "table.csv").write_text("who,what\n" + "\n".join(lines) + "\n")
    (place / "exp.toml").write_text(EXPERIMENT)
    before = sys.argv
    sys.argv = ["tacit", "train", str(place / "exp.toml"), "--out", str(place / "run")]
    with pytest.raises(SystemExit) as stop:
        main()
    sys.argv = before
    assert not stop.value.code
    return place


def flipped(content):
    """A bit in the middle of the last number that stands there."""
    at = max(content.rfind(digit) for digit in (b"1", b"2", b"3", b"4"))
    return content[:at] + bytes([content[at] ^ 8]) + content[at + 1 :]


HARMS = {
    "flipped": flipped,
    "cut": lambda content: content[: len(content) // 2],
    "deep": lambda _: b"[" * 100_000,
    "empty": lambda _: b"",
    "noise": lambda _: bytes(range(256)) * 4,
    "list": lambda _: b"[1, 2]\n",
    "table": lambda _: b'{"round": 0, "experiment": 3, "format": 2}\n',
}


@pytest.mark.parametrize("harm", some_of([*HARMS], 3))
@pytest.mark.parametrize("name", READS)
def test_a_damaged_file_is_one_sentence(tacit, trained, tmp_path, name, harm):
    """No figure that was read from it is printed either."""
    place = tmp_path / "copy"
    shutil.copytree(trained, place)
    file = place / "run" / name
    whole = file.read_bytes()
    changed = HARMS[harm](whole)
    assert changed != whole
    file.write_bytes(changed)
    for command, *options in READS[name]:
        call = [command, place / "run", *options]
        if command == "resume":
            call = ["train", trained / "exp.toml", "--out", place / "run", "--resume"]
        answer = tacit(*call, "--json")
        assert answer.code == 2, (call, answer)
        assert answer.json.keys() == {"error"}, call
        assert "Traceback" not in answer.err
        assert name.rpartition("/")[2] in answer.err, answer.err


@pytest.mark.parametrize("before", ["[privacy]", "mechanism"])
def test_an_experiment_that_is_cut_between_lines_is_named(
    tacit, trained, tmp_path, before
):
    """What is left is a whole table, and looks like one of an earlier version."""
    place = tmp_path / "run"
    shutil.copytree(trained / "run", place)
    file = place / "experiment.toml"
    head, found, _ = file.read_text().partition(f"\n{before}")
    assert found
    file.write_text(head + "\n")
    answer = tacit("report", place)
    assert answer.code == 2
    assert "experiment.toml names no privacy.mechanism" in answer.err


def test_a_damaged_cache_is_one_line_and_no_error(tacit, trained):
    call = ("plan", trained / "exp.toml", "--json")
    assert tacit(*call).code == 0
    [manifest] = Path(os.environ["TACIT_CACHE"]).glob("parsed/*/manifest.json")
    manifest.write_bytes(flipped(manifest.read_bytes()))
    answer = tacit(*call)
    assert answer.code == 0, answer.err
    assert answer.err.count("note: cache entry") == 1
    assert "is damaged" in answer.err
    again = tacit(*call)
    assert (again.code, again.err) == (0, "")


def test_a_run_without_checksums_is_read_with_a_note(tacit, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "copy")
    run = tmp_path / "copy" / "run"
    document = json.loads((run / "result.json").read_text())
    del document["checksum"]
    (run / "result.json").write_text(json.dumps(document))
    answer = tacit("report", run, "--json")
    assert answer.code == 0, answer.err
    assert f"note: {run / 'result.json'} has no checksum" in answer.err


@pytest.mark.parametrize(
    "harm",
    [
        lambda r: r.pop("epsilons"),
        lambda r: r.update(epsilons=3),
        lambda r: r["epsilons"][0].pop("unit"),
        lambda r: r["simulation_only"].pop("evaluations"),
        lambda r: r.update(simulation_only=[]),
        lambda r: r.update(method=3),
    ],
)
def test_nor_is_an_old_result_that_is_none_a_traceback(tacit, trained, tmp_path, harm):
    shutil.copytree(trained, tmp_path / "copy")
    file = tmp_path / "copy" / "run" / "result.json"
    document = json.loads(file.read_text())
    del document["checksum"]
    harm(document)
    file.write_text(json.dumps(document))
    spoken(tacit("report", file.parent), "result.json is damaged: it is no result")
