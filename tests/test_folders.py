"""Folders that are replaced as a whole."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import dynid.folders as folders
from dynid.errors import InputError
from dynid.folders import BusyFolderError, changed_folder, complete, only_writer

OLD = {"a": "old a", "b": "old b", "gone": "old", "deep/c": "old c", "mine.txt": "user's"}
NEW = {"a": "new a", "b": "new b", "more": "new", "deep/c": "new c", "mine.txt": "user's"}


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def change(folder: Path) -> None:
    """What a verb does: some files replaced, one new, one removed, the user's own left alone."""
    with changed_folder(folder) as made:
        for name, text in NEW.items():
            if name != "mine.txt":
                folders.write_bytes(made.stage / name, text.encode())
        (made.stage / "gone").unlink(missing_ok=True)


def test_a_change_is_whole_and_keeps_other_files(tmp_path: Path) -> None:
    place = fill(tmp_path / "run", OLD)
    change(place)
    assert content(place) == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_error_leaves_the_old_content_and_names_the_folder(tmp_path: Path) -> None:
    place = fill(tmp_path / "run", OLD)

    def fail() -> None:
        with changed_folder(place) as made:
            folders.write_bytes(made.stage / "b", b"new b")
            (made.stage / "a" / "b").write_text("under a file")

    with pytest.raises(InputError, match=rf"^cannot write '{place}/a/b': "):
        fail()
    assert content(place) == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


CHILD = """
import os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
import dynid.folders as folders, test_folders
place, number, inside = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "inside"
counter = 0
def before(call):
    def stepped(*args, **more):
        global counter
        if counter == number:
            os.kill(os.getpid(), 9)
        counter += 1
        return call(*args, **more)
    return stepped
for name in ("_rename", "_exchange", "sync", "_flush", "_replay"):
    setattr(folders, name, before(getattr(folders, name)))
if inside:
    os.chdir(place)
test_folders.change(place)
"""


@pytest.mark.parametrize("where", ["outside", "inside"])  # from inside the folder is not exchanged but written by a journal
def test_a_kill_before_any_step_leaves_the_old_or_the_new(tmp_path: Path, where: str) -> None:
    """Each step of the operating system once; forks, because starting Python a hundred times takes too long."""
    outcomes = set()
    for number in range(60):
        place = fill(tmp_path / f"run{number}", OLD)
        child = os.fork()
        if child == 0:
            sys.argv = ["child", str(place), str(number), where]
            try:
                exec(CHILD.format(tests=str(Path(__file__).parent)), {"__name__": "child"})  # killed in here, or done
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if where == "inside":
            complete(place)  # as load_result does
        found = content(place)
        assert found in (OLD, NEW), (number, found)
        outcomes.add(found == NEW)
        change(place)
        assert content(place) == NEW
        assert {path.name for path in tmp_path.iterdir()} <= {f"run{k}" for k in range(number + 1)}
        if not os.WIFSIGNALED(status):
            break
    else:
        pytest.fail("more steps than expected")
    assert outcomes == {False, True}


def test_the_exchange_and_the_journal_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged, moved = fill(tmp_path / "one", OLD), fill(tmp_path / "two", OLD)
    inode = moved.stat().st_ino
    change(exchanged)
    monkeypatch.setattr(folders, "_exchange", lambda *_: False)
    change(moved)
    assert content(exchanged) == content(moved) == NEW
    assert moved.stat().st_ino == inode


def test_a_second_writer_is_refused_and_a_dead_one_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "run"
    code = (
        f"import time\nfrom dynid.folders import only_writer\nwith only_writer({str(place)!r}):\n"
        "    print('in', flush=True)\n    time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "in\n"
    with (
        pytest.raises(BusyFolderError, match=rf"being written by another run \(process {other.pid}\).*wait"),
        only_writer(place),
    ):
        pass
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert (tmp_path / ".run.lock").is_file()  # left behind
    with only_writer(place), only_writer(place):  # and again by the same thread
        pass
    assert not (tmp_path / ".run.lock").exists()


def test_what_a_dead_writer_left_is_cleared(tmp_path: Path) -> None:
    place = fill(tmp_path / "run", OLD)
    fill(tmp_path / f".run.{'0' * 32}.new", {"a": "half"})
    fill(tmp_path / ".run.new", {"a": "a folder of the user"})
    change(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".run.new", "run"]


def test_a_file_put_there_meanwhile_stays(tmp_path: Path) -> None:
    place = fill(tmp_path / "run", OLD)
    with changed_folder(place) as made:
        folders.write_bytes(made.stage / "a", b"new a")
        (place / "note.txt").write_text("written meanwhile")
    assert content(place) == OLD | {"a": "new a", "note.txt": "written meanwhile"}


def test_links_to_folders_and_files_stay_links(tmp_path: Path) -> None:
    real = fill(tmp_path / "real", {"a": "1"})
    (tmp_path / "link").symlink_to(real)
    (real / "to").symlink_to("a")
    with changed_folder(tmp_path / "link") as made:
        folders.write_bytes(made.stage / "b", b"2")
    assert (tmp_path / "link").is_symlink()
    assert (real / "to").readlink() == Path("a")
    assert (real / "b").read_text() == "2"


def test_a_large_folder_is_not_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_ENTRIES", 3)
    place = fill(tmp_path / "home", OLD)
    inode = place.stat().st_ino
    with changed_folder(place) as made:
        folders.write_bytes(made.stage / "exports.json", b"{}")
    assert content(place) == OLD | {"exports.json": "{}"}
    assert place.stat().st_ino == inode


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match="cannot write"), changed_folder(place):
            pass


@pytest.mark.parametrize("way", ["removed", "link"])
def test_a_journal_that_came_with_a_folder_changes_nothing_outside(way: str, tmp_path: Path) -> None:
    victim = fill(tmp_path / "home", {"diary.txt": "mine"})
    folder = fill(tmp_path / "run", {"a.txt": "old"})
    journal = folder / ".dynid.journal"
    if way == "removed":
        fill(journal, {".removed": "../home/diary.txt"})
    else:
        (folder / "sub").symlink_to(victim)
        fill(journal, {"sub/diary.txt": "theirs"})
    with pytest.raises(InputError, match=r"journal that would change .* which is not in it"):
        complete(folder)
    assert content(victim) == {"diary.txt": "mine"}


def test_a_folder_with_pipes_or_devices_is_not_copied(tmp_path: Path) -> None:
    """A copy of a pipe would wait for its other end for ever; a second name of a device is nobody's to give."""
    folder = fill(tmp_path / "run", {"a.txt": "old", "run.json": "{}"})
    os.mkfifo(folder / "pipe")
    with changed_folder(folder) as made:
        assert sorted(path.name for path in made.stage.iterdir()) == ["run.json"]
        (made.stage / "b.txt").write_text("new")
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt", "pipe", "run.json"]


def test_a_thread_may_lock_again_and_another_is_refused(tmp_path: Path) -> None:
    place, refused = tmp_path / "run", list[str]()

    def other() -> None:
        try:
            with only_writer(place):
                refused.append("let in")
        except BusyFolderError as error:
            refused.append(str(error))

    def ask() -> str:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return refused.pop()

    with only_writer(place) as found:
        assert found == place.resolve()
        with only_writer(place):
            assert (tmp_path / ".run.lock").read_text() == f"{os.getpid()}\n"
        assert f"(process {os.getpid()})" in ask()  # the inner one ended, the outer one has not
    assert ask() == "let in"
    assert not (tmp_path / ".run.lock").exists()


def test_a_lock_is_made_with_the_folders_above_it(tmp_path: Path) -> None:
    with only_writer(tmp_path / "far" / "away" / "run"):
        assert (tmp_path / "far" / "away" / ".run.lock").is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/x' cannot be made"), only_writer(tmp_path / "file" / "x" / "run"):
        pass
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"cannot be (found|made)|cannot write"), changed_folder(tmp_path / "loop" / "run"):
        pass


def test_where_nothing_can_be_put_beside_a_folder_it_is_changed_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a mounted folder, or one whose parent belongs to somebody else."""
    place = fill(tmp_path / "run", OLD)
    inode = place.stat().st_ino
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK) and access(path, mode)
    )
    with changed_folder(place) as made:
        assert made.stage.parent == place
        assert (place / ".dynid.lock").is_file()
        assert not (made.stage / ".dynid.lock").exists()
        assert not any(path.name.startswith(".dynid") for path in made.stage.rglob("*"))
        folders.write_bytes(made.stage / "a", b"new a")
        (made.stage / "gone").unlink()
    assert content(place) == {name: text for name, text in OLD.items() if name != "gone"} | {"a": "new a"}
    assert place.stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_journal_is_completed_once_and_takes_files_away(tmp_path: Path) -> None:
    for place, journal in ((tmp_path / "one", ".one.journal"), (tmp_path / "two", "two/.dynid.journal")):
        fill(place, OLD)
        fill(
            tmp_path / journal,
            {"a": "new a", "deep/new/d": "new d", "x/y/z": "new z", ".removed": "gone\0mine.txt\0never there"},
        )
        complete(place)
        complete(place)
        left = {name: text for name, text in OLD.items() if name not in ("gone", "mine.txt")}
        assert content(place) == left | {"a": "new a", "deep/new/d": "new d", "x/y/z": "new z"}
        assert not (tmp_path / journal).exists()


def test_what_stays_as_it_was(tmp_path: Path) -> None:
    """Permissions and times of folders, files that only have a second name, and names of files outside the stage."""
    place = fill(tmp_path / "run", OLD)
    place.chmod(0o750)
    (place / "deep").chmod(0o700)
    os.utime(place / "b", (1, 2))
    kept = (place / "b").stat().st_ino
    with changed_folder(place) as made:
        assert (made.stage / "b").stat().st_ino == kept  # linked, not copied
        folders.write_bytes(made.stage / "a", b"new a")
        assert made.final(made.stage / "deep" / "c") == place / "deep" / "c"
        assert made.final(tmp_path / "elsewhere") == tmp_path / "elsewhere"
    assert (place.stat().st_mode & 0o777, (place / "deep").stat().st_mode & 0o777) == (0o750, 0o700)
    assert ((place / "b").stat().st_ino, (place / "b").stat().st_mtime) == (kept, 2.0)


def test_a_file_put_there_meanwhile_never_replaces_one_of_the_change(tmp_path: Path) -> None:
    place = fill(tmp_path / "run", OLD)
    with changed_folder(place) as made:
        folders.write_bytes(made.stage / "more", b"of the change")
        (place / "more").write_text("written meanwhile")
        fill(place, {"new/deep/note": "kept"})
    assert content(place) == OLD | {"more": "of the change", "new/deep/note": "kept"}


def test_a_file_system_that_cannot_sync_or_link_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = fill(tmp_path / "run", OLD)

    def refused(number: int) -> Callable[..., None]:
        def call(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return call

    monkeypatch.setattr(os, "link", refused(errno.EPERM))
    for number in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
        monkeypatch.setattr(os, "fsync", refused(number))
        change(place)
        assert content(place) == NEW
    monkeypatch.setattr(os, "fsync", refused(errno.EIO))
    with pytest.raises(InputError, match=r"cannot write .*Input/output error"):
        change(place)
    assert content(place) == NEW
    monkeypatch.setattr(os, "open", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    folders.sync(place)  # somebody's own file that only its owner reads


def test_a_folder_of_just_so_many_files_is_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_ENTRIES", len(OLD))
    place = fill(tmp_path / "run", OLD)
    inode = place.stat().st_ino
    change(place)
    assert content(place) == NEW
    assert place.stat().st_ino != inode


def test_files_put_into_a_folder_below_meanwhile_are_brought_along(tmp_path: Path) -> None:
    """The old folder is exchanged for the new one: what came into it after it was copied must not go with it."""
    place = fill(tmp_path / "run", OLD)
    inode = place.stat().st_ino
    with changed_folder(place) as made:
        folders.write_bytes(made.stage / "deep" / "c", b"of the change")
        fill(place, {"deep/note": "kept", "deep/far/under/more": "kept too", "deep/c": "written meanwhile"})
    assert place.stat().st_ino != inode
    assert content(place) == OLD | {"deep/c": "of the change", "deep/note": "kept", "deep/far/under/more": "kept too"}


def test_what_was_there_before_is_not_brought_to_disk_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of many large files would take long; those that are new must be there before they get their name."""
    place = fill(tmp_path / "run", OLD)
    (place / "link").symlink_to("a")
    asked: list[str] = []
    monkeypatch.setattr(folders, "sync", lambda path: asked.append(path.name))
    with changed_folder(place) as made:
        folders.write_bytes(made.stage / "a", b"new a")
        asked.clear()
    assert "a" in asked
    assert not {"b", "c", "gone", "mine.txt", "link"} & set(asked)


@pytest.mark.parametrize("beside", [True, False])
def test_a_journal_lies_where_the_stage_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    place = fill(tmp_path / "run", OLD)
    monkeypatch.setattr(folders, "_exchange", lambda *_: False)
    monkeypatch.setattr(folders, "_can_stage_beside", lambda _: beside)
    seen: list[Path] = []
    replay = folders._replay
    monkeypatch.setattr(folders, "_replay", lambda place, journal: (seen.append(journal), replay(place, journal))[1])
    change(place)
    assert seen == [tmp_path / ".run.journal" if beside else place / ".dynid.journal"]
    assert content(place) == NEW


def test_an_error_that_names_no_file_keeps_its_own_words(tmp_path: Path) -> None:
    def fail() -> None:
        with changed_folder(tmp_path / "run") as made:
            raise InputError(f"{made.stage / 'a.urdf'} is wrong", 7)

    with pytest.raises(InputError) as refused:
        fail()
    assert refused.value.args == (f"{tmp_path / 'run' / 'a.urdf'} is wrong", 7)


def test_a_mounted_folder_is_changed_from_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be renamed, even where what is beside it lies on the same disk."""
    place = fill(tmp_path / "run", OLD)
    monkeypatch.setattr(Path, "is_mount", lambda path: path == place)
    with changed_folder(place) as made:
        assert made.stage.parent == place


def test_a_lock_is_made_by_the_users_mask_and_may_be_gone(tmp_path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    with only_writer(tmp_path / "run"):
        lock = tmp_path / ".run.lock"
        assert lock.stat().st_mode & 0o777 == 0o666 & ~mask
        lock.unlink()  # by somebody who tidies up


def test_without_a_working_folder_or_an_exchange_files_are_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Path:
        raise FileNotFoundError(2, "No such file or directory")

    for name, patch in (
        ("one", lambda: monkeypatch.setattr(Path, "cwd", gone)),
        ("two", lambda: monkeypatch.setattr("dynid.folders.ctypes.CDLL", lambda *_, **__: object())),
    ):
        place = fill(tmp_path / name, OLD)
        inode = place.stat().st_ino
        patch()
        change(place)
        monkeypatch.undo()
        assert content(place) == NEW
        assert place.stat().st_ino == inode


def test_a_lock_names_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / ".run.lock").write_text("9" * 30 + "\n")  # of a writer that was killed
    with only_writer(tmp_path / "run"):
        assert (tmp_path / ".run.lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_whose_name_was_taken_away_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / ".run.lock"
    taken, flock = [], folders.fcntl.flock

    def last_owner_leaves(file: int, how: int) -> None:
        flock(file, how)
        if not taken:
            lock.unlink()  # just before, the writer before us removed its file
        taken.append(file)

    monkeypatch.setattr(folders.fcntl, "flock", last_owner_leaves)
    with only_writer(tmp_path / "run"):
        assert lock.is_file()
    assert len(taken) == 2
