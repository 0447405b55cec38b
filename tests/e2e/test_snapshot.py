"""--snapshot: a job runs the code it was submitted with."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from berthlib import PATIENCE, eventually

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def git(tree, *words):
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main",
         "-C", str(tree), *words],
        check=True, capture_output=True, timeout=PATIENCE,
        env={**os.environ, "HOME": str(tree), "GIT_CONFIG_NOSYSTEM": "1"})


def repository(tree):
    """A small project: tracked, untracked and ignored files, a program and links."""
    (tree / "package").mkdir(parents=True)
    (tree / "data").mkdir()
    (tree / "code.txt").write_text("old\n")
    (tree / "package" / "tool.sh").write_text("#!/bin/sh\necho tool $(cat ../code.txt)\n")
    (tree / "package" / "tool.sh").chmod(0o755)
    (tree / "data" / "big.bin").write_text("data\n")
    (tree / "link.txt").symlink_to("code.txt")
    (tree / ".gitignore").write_text("data/\n*.ckpt\n")
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "first")
    (tree / "untracked.txt").write_text("untracked\n")
    (tree / "model.ckpt").write_text("weights\n")
    return tree


def snapshots(berth):
    folder = berth.dir / "snapshots"
    return sorted(folder.iterdir()) if folder.exists() else []


def hold(berth):
    """Nothing starts until release()."""
    berth.cli("pause", "--instance", check=0)


def release(berth):
    berth.cli("resume", "--instance", check=0)


def add(berth, *words, cwd, code=0):
    done = berth.cli("add", *words, cwd=cwd, env={"PWD": str(cwd)}, check=code)
    return int(done.stdout) if code == 0 else done


def output(berth, job_id):
    berth.wait_one(job_id)
    return berth.cli("log", job_id, check=0).stdout


@needs_git
def test_edits_after_submission_do_not_matter(berth, tmp_path):
    tree = repository(tmp_path / "project")
    hold(berth)
    old = add(berth, "--gpus", 0, "--snapshot", "--log", "mine.log",
              "cat code.txt link.txt untracked.txt; pwd", cwd=tree)
    inside = add(berth, "--gpus", 0, "--snapshot", "./tool.sh", cwd=tree / "package")
    new = add(berth, "--gpus", 0, "cat code.txt", cwd=tree)
    (tree / "code.txt").write_text("new\n")
    (tree / "untracked.txt").unlink()
    release(berth)
    place = pathlib.Path(berth.show(old)["job"]["cwd"])
    assert output(berth, old) == f"old\nold\nuntracked\n{place}\n"
    assert output(berth, inside) == "tool old\n"
    assert output(berth, new) == "new\n"
    # A relative log stays where it was meant.
    assert (tree / "mine.log").read_text().startswith("old\n")
    assert place.name == "project" and place.parent.parent == berth.dir / "snapshots"
    shown = berth.cli("show", inside, check=0).stdout
    assert f"of {tree}/package, as it was at submission" in shown
    assert "at submission" not in berth.cli("show", new, check=0).stdout


@needs_git
def test_what_is_ignored_is_not_copied_but_can_be_reached(berth, tmp_path):
    tree = repository(tmp_path / "project")
    one = add(berth, "--gpus", 0, "--snapshot", "cat data/big.bin; echo more >data/result; cat *.ckpt",
              cwd=tree)
    assert output(berth, one) == "data\nweights\n"
    place = pathlib.Path(berth.show(one)["job"]["cwd"])
    assert (place / "data").is_symlink() and (place / "model.ckpt").is_symlink()
    assert (tree / "data" / "result").read_text() == "more\n"
    assert not (place / ".git").exists()
    assert (place / "link.txt").is_symlink() and not (place / "code.txt").is_symlink()
    assert os.access(place / "package" / "tool.sh", os.X_OK)
    # Removing the copy leaves what the links lead to.
    berth.cli("rm", one, check=0)
    eventually(lambda: not place.exists(), "the snapshot is gone")
    assert (tree / "data" / "big.bin").exists() and (tree / "model.ckpt").exists()


@needs_git
def test_folders_that_something_else_stands_for_now_are_what_stands_there(berth, tmp_path):
    """git still knows the files that were in them."""
    tree = repository(tmp_path / "project")
    for name in ("moved", "flat"):
        (tree / name).mkdir()
        (tree / name / "file").write_text(f"{name}\n")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "second")
    (tree / "moved").rename(tmp_path / "moved")
    (tree / "moved").symlink_to(tmp_path / "moved")
    shutil.rmtree(tree / "flat")
    (tree / "flat").write_text("a file\n")
    one = add(berth, "--gpus", 0, "--snapshot", "cat moved/file flat", cwd=tree)
    assert output(berth, one) == "moved\na file\n"


@needs_git
def test_a_batch_shares_one_snapshot_that_goes_with_its_last_job(berth, tmp_path):
    tree = repository(tmp_path / "project")
    (tree / "jobs.yaml").write_text(
        "version: 1\ndefaults: {gpus: 0}\njobs:\n"
        "  - {name: a, run: cat code.txt}\n  - {name: b, run: cat code.txt, cwd: package/..}\n")
    done = berth.cli("run", "--snapshot", "jobs.yaml", cwd=tree, check=0)
    assert "2 of 2 succeeded" in done.stdout
    [only] = snapshots(berth)
    berth.cli("rm", 1, check=0)
    berth.restart()
    berth.cli("ls", check=0)
    assert only.exists(), "job 2 still belongs to it"
    berth.cli("rm", 2, check=0)
    eventually(lambda: not snapshots(berth), "nobody needs it")


@needs_git
def test_a_tree_that_is_too_large_is_refused_with_what_makes_it_so(berth, tmp_path):
    tree = repository(tmp_path / "project")
    (tree / "weights").mkdir()
    (tree / "weights" / "w.bin").write_bytes(bytes(3 << 20))
    done = add(berth, "--snapshot", "--snapshot-limit", "1MiB", "true", cwd=tree, code=1)
    assert re.search(r"too large for a snapshot: 3 MiB in \d+ files, and 1 MiB in \d+ files are "
                     r"allowed; the largest in it: weights/ \(3 MiB, 1 file\)", done.stderr), done
    assert "--snapshot-limit" in done.stderr and ".gitignore" in done.stderr
    assert not snapshots(berth) and not berth.jobs(), "nothing is left, nothing was submitted"
    fine = add(berth, "--gpus", 0, "--snapshot", "--snapshot-limit", "10MiB", "true", cwd=tree)
    assert berth.wait_one(fine)["state"] == "succeeded"


@needs_git
def test_a_failure_half_way_leaves_nothing(berth, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    tree = repository(tmp_path / "project")
    (tree / "secret").write_text("x")
    (tree / "secret").chmod(0)
    done = add(berth, "--snapshot", "true", cwd=tree, code=1)
    assert "cannot read" in done.stderr and "secret" in done.stderr
    assert not snapshots(berth) and not berth.jobs()


def test_without_git_everything_but_caches_is_copied(berth, tmp_path):
    tree = tmp_path / "plain"
    (tree / "__pycache__").mkdir(parents=True)
    (tree / "__pycache__" / "x.pyc").write_text("x")
    (tree / "venv").mkdir()
    (tree / "venv" / "pyvenv.cfg").write_text("home = /usr\n")
    (tree / "sub").mkdir()
    (tree / "sub" / "code.txt").write_text("old\n")
    (tree / "up").symlink_to("../elsewhere.txt")
    (tmp_path / "elsewhere.txt").write_text("elsewhere\n")
    one = add(berth, "--gpus", 0, "--snapshot", f"ls -A; cat up sub/code.txt; ls {tree}/sub",
              cwd=tree)
    assert output(berth, one) == "sub\nup\nvenv\nelsewhere\nold\ncode.txt\n"
    place = pathlib.Path(berth.show(one)["job"]["cwd"])
    assert (place / "venv").is_symlink()
    warned = berth.cli("add", "--gpus", 0, "--snapshot", f"cat {tree}/sub/code.txt", cwd=tree,
                       env={"PWD": str(tree)}, check=0)
    assert "stays the original, not the snapshot" in warned.stderr


def test_snapshots_of_nobody_go_when_the_daemon_starts(berth, tmp_path):
    tree = tmp_path / "plain"
    tree.mkdir()
    (tree / "code.txt").write_text("old\n")
    job_id = add(berth, "--gpus", 0, "--snapshot", "true", cwd=tree)
    berth.wait_one(job_id)
    [kept] = snapshots(berth)
    # The daemon dies between forgetting the job and deleting its snapshot.
    saved = tmp_path / "saved"
    shutil.copytree(kept, saved)
    berth.cli("rm", job_id, check=0)
    eventually(lambda: not kept.exists(), "it is gone")
    assert berth.stop(signal.SIGTERM) == 0
    shutil.copytree(saved, kept)
    young = berth.dir / "snapshots" / "somebody-is-making-this-one"
    young.mkdir()
    berth.start()
    eventually(lambda: not kept.exists(), "it is gone again")
    assert young.exists()
