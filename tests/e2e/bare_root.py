"""A Debian that has nothing but the essential packages, to see what a program needs of a machine.

It is made once with debootstrap and kept in build/bare-root; tests get a copy of it. Commands run
there in namespaces of their own, so that nothing they start outlives them.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from berthlib import REPO

SUITE = "bookworm"
KEPT = REPO / "build" / "bare-root"
DEBOOTSTRAP_PATIENCE = 900  # seconds; a mirror can be slow
USER = 1000


def apt_sources():
    """The text of all sources of packages this machine has."""
    etc = pathlib.Path("/etc/apt")
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    return [file.read_text() for file in files if file.is_file()]


def mirror(texts):
    """The mirror this machine itself is told to get SUITE from; none if it is not told, for debootstrap knows one."""
    for text in texts:
        for line in re.findall(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s.*\bmain\b", text, re.M):
            if line[1] == SUITE:
                return line[0]
        for paragraph in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^(\S+):[ \t]*(.*)$", paragraph, re.M))
            if SUITE in fields.get("Suites", "").split() and fields.get("URIs"):
                return fields["URIs"].split()[0]
    return None


def proxies():
    """What apt is told to go through, as variables of the environment."""
    found = {}
    for scheme in ("http", "https"):
        asked = subprocess.run(
            ["apt-config", "shell", "proxy", f"Acquire::{scheme}::Proxy"],
            capture_output=True, text=True, check=False)
        words = shlex.split(asked.stdout)
        if words and words[0].startswith("proxy=") and words[0] != "proxy=DIRECT":
            found[f"{scheme}_proxy"] = words[0].removeprefix("proxy=")
    return found


def prepare():
    """Makes the bare root unless it is there. Skips the test where that cannot be done."""
    if os.geteuid() != 0:
        pytest.skip("a bare root takes root")
    if (KEPT / "complete").exists():
        return
    if not (program := shutil.which("debootstrap") or shutil.which("/usr/sbin/debootstrap")):
        pytest.skip("a bare root takes debootstrap")
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    told = mirror(apt_sources())
    made = subprocess.run(
        [program, "--variant=minbase", SUITE, KEPT / "root", *([told] if told else [])],
        env={**os.environ, **proxies()}, capture_output=True, text=True, check=False,
        timeout=DEBOOTSTRAP_PATIENCE)
    if made.returncode != 0:
        shutil.rmtree(KEPT, ignore_errors=True)
        pytest.skip(f"debootstrap failed: {' '.join(made.stdout.splitlines()[-2:])}")
    (KEPT / "complete").touch()


class BareRoot:
    def __init__(self, folder):
        self.path = folder / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", KEPT / "root", self.path], check=True)
        self.home = "/home/user"
        home = self.path / "home/user"
        home.mkdir(parents=True, exist_ok=True)
        os.chown(home, USER, USER)

    def run(self, script, *, as_root=False, timeout=240, **env):
        """Runs a script of the bare root's shell; it and all it started have ended afterwards."""
        enter = (
            'mount -t proc proc "$1/proc" && mount -t tmpfs -o mode=1777 tmpfs "$1/tmp" && '
            'chroot --userspec="$2" "$1" /bin/sh -euc "$3"')
        who = "0:0" if as_root else f"{USER}:{USER}"
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--",
                   "/bin/sh", "-c", enter, "enter", str(self.path), who, script]
        home = "/root" if as_root else self.home
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LC_ALL": "C", **env}
        return subprocess.run(command, env=clean, cwd="/", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
