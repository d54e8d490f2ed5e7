"""A file is there as a whole or not at all."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from tacit import files
from tacit.files import write_atomically, write_json


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def fill(folder, content, *, is_private=False, **how):
    """A folder with a file in it."""
    with (
        files.draft_directory(folder, is_private=is_private, **how) as beside,
        files.new_file(beside / "a", is_private=is_private) as file,
    ):
        file.write(content)


@pytest.fixture
def umask():
    """A umask of nothing: files have the modes that they were made with."""
    before = os.umask(0)
    yield os.umask
    os.umask(before)


def test_a_file_is_made_with_its_folders_and_nothing_else(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [*tmp_path.rglob("*")] == [tmp_path / "a", tmp_path / "a" / "b", path]


def test_when_writing_fails_the_old_file_stays_alone(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"


def test_a_reader_during_replacement_sees_whole_files(tmp_path):
    path, size, done = tmp_path / "file", 200_000, threading.Event()
    write_atomically(path, bytes(size))

    def write() -> None:
        for number in range(1, 30):
            write_atomically(path, bytes([number]) * size)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        content = path.read_bytes()
        assert len(content) == size
        assert len(set(content)) == 1
        seen.add(content[0])
    writer.join()
    assert len(seen) > 1


def test_json_is_for_people_and_refuses_what_json_cannot_say(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"who": "Amélie"})
    assert path.read_text("utf-8") == '{\n  "who": "Amélie"\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": float("nan")})
    assert "Amélie" in path.read_text("utf-8")


# links, modes and names


def test_a_link_in_the_place_is_replaced_and_its_target_left_alone(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_text("mine")
    path.symlink_to(victim)
    write_atomically(path, b"new", is_private=True)
    assert not path.is_symlink()
    assert (path.read_bytes(), victim.read_text()) == (b"new", "mine")


def test_the_name_of_a_draft_cannot_be_guessed(tmp_path, monkeypatch):
    """An attacker laid a link where the draft of an earlier version would be."""
    victim, names = tmp_path / "victim", []
    victim.write_text("mine")
    (tmp_path / f".file.{os.getpid()}.part").symlink_to(victim)

    def seen(old, new):
        names.append(os.path.basename(old))
        os.rename(old, new)

    monkeypatch.setattr(os, "replace", seen)
    for _ in range(2):
        write_atomically(tmp_path / "file", b"secret", is_private=True)
    assert victim.read_text() == "mine"
    assert len({*names}) == 2
    assert all(str(os.getpid()) not in name for name in names)


def test_a_draft_is_never_written_through_a_link(tmp_path, monkeypatch):
    """Even if the name were guessed: what is there already is not opened."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".tacit-draft-known").symlink_to(victim)
    monkeypatch.setattr(files, "_draft_name", lambda: ".tacit-draft-known")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "file", b"secret")
    with pytest.raises(FileExistsError), files.draft_directory(tmp_path / "folder"):
        pass
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o644)])
def test_a_file_has_its_mode_from_the_first_byte(tmp_path, umask, is_private, mode):
    path = tmp_path / "file"
    path.touch(0o666)
    with files.draft(path, is_private=is_private) as file:
        (beside,) = [p for p in tmp_path.iterdir() if p != path]
        assert mode_of(beside) == mode
        file.write(b"content")
    assert mode_of(path) == mode
    files.append(tmp_path / "log", b"line\n", is_private=is_private)
    assert mode_of(tmp_path / "log") == mode
    folder = tmp_path / "folder"
    fill(folder, b"content", is_private=is_private)
    assert mode_of(folder / "a") == mode
    assert mode_of(folder) == (0o700 if is_private else 0o755)


def test_folders_are_written_by_their_owner_alone(tmp_path, umask):
    """Who can write to a folder can replace what is in it."""
    umask(0)
    write_atomically(tmp_path / "a" / "b" / "file", b"x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755


def test_the_umask_takes_away(tmp_path, umask):
    umask(0o077)
    write_atomically(tmp_path / "file", b"public")
    assert mode_of(tmp_path / "file") == 0o600


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"content")
    assert path.read_bytes() == b"content"
    with pytest.raises(OSError, match="File name too long"):
        write_atomically(tmp_path / ("n" * 256), b"content")
    assert [*tmp_path.iterdir()] == [path]


def test_appending_and_locking_follow_no_link_and_open_no_pipe(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "link").symlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", errno.ELOOP), ("pipe", errno.ENXIO)):
        with pytest.raises(OSError, match=r"link|pipe") as found:
            files.append(tmp_path / name, b"more")
        assert found.value.errno == why
    with pytest.raises(OSError, match="symbolic link"), files.locked(tmp_path / "link"):
        pass
    pipe = files.locked(tmp_path / "pipe")
    with pytest.raises(OSError, match="no ordinary file"), pipe:
        pass
    assert victim.read_text() == "mine"


def test_a_lock_is_held_once(tmp_path):
    path = tmp_path / ".lock"
    with files.locked(path), pytest.raises(BlockingIOError), files.locked(path):
        pass
    with files.locked(path):
        pass


# what the dead leave


def test_the_draft_of_a_dead_process_is_swept_and_that_of_a_living_one_kept(tmp_path):
    dead, folder = tmp_path / ".tacit-draft-0123456789abcdef", tmp_path / "folder"
    dead.write_bytes(b"half")
    old = tmp_path / ".tacit-draft-fedcba9876543210"
    old.mkdir()
    (old / "column").write_bytes(b"half")
    foreign = tmp_path / ".tacit-draft-of-somebody-else"
    foreign.write_bytes(b"not ours")
    with files.draft(tmp_path / "slow") as slow, files.draft_directory(folder) as place:
        write_atomically(tmp_path / "quick", b"done")
        assert not dead.exists()
        assert not old.exists()
        slow.write(b"still there")
        assert place.is_dir()
    assert (tmp_path / "slow").read_bytes() == b"still there"
    assert {p.name for p in tmp_path.iterdir()} == {
        *("slow", "quick", "folder", foreign.name)
    }


def test_a_killed_writer_leaves_a_draft_that_the_next_one_sweeps(tmp_path):
    code = (
        "import os, sys, signal\nfrom pathlib import Path\nfrom tacit import files\n"
        "with files.draft(Path(sys.argv[1]), is_private=True) as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", code, str(path)])
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".tacit-draft-")
    assert mode_of(left) == 0o600
    write_atomically(path, b"whole")
    assert [*tmp_path.iterdir()] == [path]


def test_a_draft_that_was_swept_before_it_was_locked_is_made_again(
    tmp_path, monkeypatch
):
    flock, swept = files.fcntl.flock, []

    def sweeper_first(handle, how):
        if not swept:
            swept.extend(tmp_path.glob(".tacit-draft-*"))
            swept[0].unlink()
        return flock(handle, how)

    monkeypatch.setattr(files.fcntl, "flock", sweeper_first)
    write_atomically(tmp_path / "file", b"content")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]
    assert len(swept) == 1


# folders


def test_a_folder_appears_with_all_its_files_or_not_at_all(tmp_path):
    place = tmp_path / "folder"
    with pytest.raises(TypeError):
        fill(place, "no bytes")
    assert [*tmp_path.iterdir()] == []
    place.mkdir()
    for content in (b"first", b"second"):
        fill(place, content, replaces=True)
        assert (place / "a").read_bytes() == content
    with pytest.raises(OSError, match="not empty"), files.draft_directory(place):
        pass
    assert [*tmp_path.iterdir()] == [place]
    assert (place / "a").read_bytes() == b"second"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_takes_the_place_of_a_file_or_a_link(tmp_path, kind):
    place, victim = tmp_path / "folder", tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").touch()
    place.touch() if kind == "file" else place.symlink_to(victim)
    with files.draft_directory(place, replaces=True):
        pass
    assert place.is_dir()
    assert not place.is_symlink()
    assert (victim / "mine").exists()


# full disks


def test_on_a_full_disk_the_old_file_stays_alone(tmp_path):
    """The kernel refuses every byte from the thousandth on."""
    path = tmp_path / "file"
    write_atomically(path, b"old")
    code = (
        "import sys\nfrom pathlib import Path\nfrom tacit.files import *\n"
        "try:\n    write_atomically(Path(sys.argv[1]), bytes(5000))\n"
        "except OSError as error:\n    print(error.errno)\n"
    )

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        preexec_fn=little_room,
    )
    assert done.stdout == f"{errno.EFBIG}\n", done.stderr
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"


def test_a_folder_that_comes_back_while_it_is_removed_is_replaced(
    tmp_path, monkeypatch
):
    """Another writer has moved the old folder away, and a new one into its place."""
    place = tmp_path / "entry"
    place.mkdir()
    (place / "old").touch()
    answers = iter([False, True])  # gone at the first look, there at the second
    seen = type(place).is_dir
    with files.draft_directory(place, replaces=True) as beside:
        (beside / "new").touch()
        monkeypatch.setattr(
            type(place), "is_dir", lambda p: next(answers) if p == place else seen(p)
        )
    assert [path.name for path in place.iterdir()] == ["new"]
