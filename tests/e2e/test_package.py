"""What ./dev package makes: it needs glibc alone, and it runs where nothing else is installed."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

import bare_root
from berthlib import BUILD, PATIENCE, REPO

sys.path.insert(0, str(REPO / "packaging"))

import elf_check  # noqa: E402
import package  # noqa: E402

FILES = [BUILD / "bin" / name for name in package.PROGRAMS] + [BUILD / package.LIBRARY]


@pytest.fixture(autouse=True, scope="module")
def release():
    if not re.search(r"^BERTH_STATIC:BOOL=ON$", (BUILD / "CMakeCache.txt").read_text(), re.M):
        pytest.skip("this build is not one that is packaged")


def make_packages(out):
    made = subprocess.run(
        [sys.executable, REPO / "packaging" / "package.py", "--build", BUILD, "--out", out],
        capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return [pathlib.Path(line) for line in made.stdout.splitlines()]


@pytest.fixture(scope="module")
def packages(release, tmp_path_factory):
    return make_packages(tmp_path_factory.mktemp("dist"))


@pytest.fixture
def unpacked(packages, tmp_path):
    """The tarball's tree, in a directory whose name is not a nice one."""
    place = tmp_path / "some where"
    place.mkdir()
    with tarfile.open(packages[0]) as tar:
        tar.extractall(place)
    [top] = place.iterdir()
    return top


@pytest.fixture(scope="module")
def bare(release, tmp_path_factory):
    bare_root.prepare()
    root = bare_root.BareRoot(tmp_path_factory.mktemp("bare"))
    yield root
    root.remove()


# --- what the programs need -----------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_needs_glibc_alone_and_not_a_new_one(path):
    assert elf_check.complaints(path) == []


def test_a_program_that_needs_more_is_found_out(tmp_path):
    """The check itself: a foreign library, a search path, and a symbol of glibc 2.36."""
    source = tmp_path / "needy.cpp"
    source.write_text(
        "#include <cstdlib>\n#include <iostream>\n"
        "int main() { std::cout << arc4random() << std::endl; }\n")
    needy = tmp_path / "needy"
    subprocess.run(["g++-12", source, "-o", needy, "-Wl,-rpath,/opt/lib"], check=True)
    said = "\n".join(elf_check.complaints(needy))
    assert "needs libstdc++.so.6, which is not part of glibc" in said
    assert "looks for libraries in '/opt/lib'" in said
    assert "needs GLIBC_2.36: arc4random" in said
    assert elf_check.oldest_glibc([needy]) >= (2, 36)


# --- the tarball ----------------------------------------------------------------------------------


def test_the_packages_are_the_same_when_made_again(packages, tmp_path):
    again = make_packages(tmp_path)
    assert [p.name for p in again] == [p.name for p in packages]
    for first, second in zip(packages, again):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_tarball_has_everything_in_its_place(packages):
    with tarfile.open(packages[0]) as tar:
        members = tar.getmembers()
    names = [m.name for m in members]
    assert names == sorted(names) and len({m.mtime for m in members}) == 1
    # No directories: unpacking over ~/.local leaves the modes of what is there alone.
    assert all((m.isreg() or m.issym()) and m.uid == m.gid == 0 for m in members)
    top = packages[0].name.removesuffix(".tar.gz")
    assert {name.partition("/")[0] for name in names} == {top}
    inside = {m.name.removeprefix(top + "/"): m for m in members}
    for name in package.PROGRAMS:
        assert inside[f"bin/{name}"].mode == 0o755
    links = {name: m.linkname for name, m in inside.items() if m.issym()}
    assert links == {f"bin/{name}": "berth" for name in package.NAMES}
    for name in (package.LIBRARY, "share/man/man1/berth.1.gz", "share/man/man1/berth-add.1.gz",
                 "share/man/man1/berthd.1.gz",
                 "share/bash-completion/completions/berth", "share/zsh/site-functions/_berth",
                 "share/fish/vendor_completions.d/berth.fish", "share/berth/jobfile.schema.json",
                 "share/doc/berth/README.md", "share/doc/berth/LICENSE",
                 "share/doc/berth/CHANGELOG.md", "share/doc/berth/docs/guide/install.md",
                 "share/systemd/user/berth.service"):
        assert inside[name].mode == 0o644 and inside[name].size > 0, name
    assert inside["share/doc/berth/examples/train.sh"].mode == 0o755


def test_the_unpacked_tree_runs_from_anywhere_and_through_a_link(unpacked, tmp_path):
    link = tmp_path / "home" / "bin" / "berth"
    link.parent.mkdir(parents=True)
    link.symlink_to(unpacked / "bin" / "berth")
    env = {"PATH": f"{link.parent}:/usr/bin:/bin", "HOME": str(tmp_path / "home"),
           "BERTH_DIR": str(tmp_path / "state"), "BERTH_GPUS": "sim:1x24GiB"}

    def berth(*words):
        return subprocess.run(["berth", *words], cwd="/", env=env, capture_output=True, text=True,
                              timeout=2 * PATIENCE, check=False)

    try:
        added = berth("add", "--", "sh", "-c", "echo card $CUDA_VISIBLE_DEVICES of $BERTH_BIN_DIR")
        assert added.returncode == 0, added
        waited = berth("wait", "1")
        assert waited.returncode == 0, (waited, berth("show", "1"))
        log = berth("log", "1")
        assert log.stdout.startswith("card ") and str(unpacked / "bin") in log.stdout, log
    finally:
        stopped = berth("stop")
    assert stopped.returncode == 0, stopped


def test_the_unit_leaves_running_jobs_alone(unpacked):
    unit = (unpacked / "share/systemd/user/berth.service").read_text()
    lines = unit.splitlines()
    assert "ExecStart=%h/.local/bin/berthd" in lines
    assert "KillMode=process" in lines and "Restart=on-failure" in lines
    assert "Delegate=yes" in lines and "@" not in unit


# --- the .deb -------------------------------------------------------------------------------------


def dpkg_deb(*words):
    return subprocess.run(["dpkg-deb", *words], check=True, capture_output=True, text=True).stdout


def test_the_deb_describes_itself_and_has_its_files(packages):
    [deb] = packages[1:]
    control = dpkg_deb("-I", deb, "control")
    fields = dict(re.findall(r"^(\S+): (.*)$", control, re.M))
    assert fields["Package"] == "berth" and fields["Architecture"] == "amd64"
    assert f"berth_{fields['Version']}_amd64.deb" == deb.name
    needed = re.fullmatch(r"libc6 \(>= 2\.(\d+)\)", fields["Depends"])
    assert needed and int(needed[1]) <= elf_check.NEWEST_GLIBC[1]
    rows = [line.split(None, 5) for line in dpkg_deb("-c", deb).splitlines()]
    assert {row[1] for row in rows} == {"root/root"}
    modes = {row[5]: row[0] for row in rows}
    for name in package.PROGRAMS:
        assert modes[f"./usr/bin/{name}"] == "-rwxr-xr-x"
    for name in package.NAMES:
        assert modes[f"./usr/bin/{name} -> berth"] == "lrwxrwxrwx"
    for name in ("lib/systemd/user/berth.service", "share/man/man1/berth.1.gz",
                 "share/bash-completion/completions/berth", "share/zsh/vendor-completions/_berth",
                 "share/doc/berth/copyright", "share/doc/berth/changelog.gz", package.LIBRARY):
        assert modes[f"./usr/{name}"] == "-rw-r--r--", name
    assert not any("/etc/" in name for name in modes)  # no conffiles


# --- where nothing is installed -------------------------------------------------------------------


def test_in_a_bare_root_the_quickstart_runs_from_the_tarball(packages, bare):
    shutil.copy(packages[0], bare.path / "opt")
    ran = bare.run(
        "mkdir ~/berth && tar -xzf /opt/berth-*.tar.gz -C ~/berth --strip-components=1\n"
        "cp -r ~/berth/share/doc/berth/examples ~/work && cd ~/work\n"
        "~/berth/bin/berth run quickstart.yaml\n"
        "~/berth/bin/berth log 4\n"
        "~/berth/bin/berth stop\n",
        BERTH_GPUS="sim:4x24GiB", timeout=6 * PATIENCE)
    assert ran.returncode == 0, ran
    assert "the 4 GPUs here are simulated" in ran.stdout
    assert "8 of 8 succeeded" in ran.stdout
    assert "lr=0.03 seed=2" in ran.stdout


def test_in_a_bare_root_the_deb_is_installed_and_removed(packages, bare):
    [deb] = packages[1:]
    shutil.copy(deb, bare.path / "opt")
    installed = bare.run(f"dpkg -i /opt/{deb.name}", as_root=True)
    assert installed.returncode == 0, installed
    assert "warning" not in installed.stderr.lower(), installed.stderr
    version = deb.name.split("_")[1]
    said = bare.run("berth --version && berthd --version")
    assert said.stdout == f"berth {version}\nberthd {version}\n", said
    page = bare.path / "usr/share/man/man1/berth.1.gz"
    assert gzip.decompress(page.read_bytes()).startswith((b".TH", b".\\\"", b"'"))
    assert (bare.path / "usr/share/bash-completion/completions/berth").exists()
    assert (bare.path / "usr/lib/systemd/user/berth.service").exists()
    ran = bare.run("berth add -- sh -c 'echo it runs' && berth wait 1 && berth log 1 && berth stop",
                   BERTH_DIR="/tmp/state", BERTH_GPUS="sim:1x24GiB")
    assert ran.returncode == 0 and "it runs" in ran.stdout, ran
    removed = bare.run("dpkg -r berth", as_root=True)
    assert removed.returncode == 0, removed
    left = [p for p in (bare.path / "usr").rglob("*berth*") if "dpkg" not in p.parts]
    assert left == [] and not os.path.exists(bare.path / "usr/bin/berth")


def test_the_mirror_is_the_one_this_machine_uses():
    old = "# none\ndeb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib\n"
    new = ("Types: deb\nURIs: http://other.example/debian\n"
           "Suites: bookworm bookworm-updates\nComponents: main\n")
    assert bare_root.mirror([old]) == "http://mirror.example/debian"
    assert bare_root.mirror(["", new]) == "http://other.example/debian"
    assert bare_root.mirror([new.replace("bookworm", "trixie")]) is None
