#!/usr/bin/python3
"""Makes the packages of what has been built: ./dev package

    package.py [--build DIR] [--out DIR]

    berth-VERSION-linux-x86_64.tar.gz   runs from wherever it is unpacked
    berth_VERSION_amd64.deb             for Debian 12, Ubuntu 22.04 and later ones

Both are the same for the same programs and commit: times come from SOURCE_DATE_EPOCH, by default
that of the last commit; names are sorted, and everything belongs to root.
"""

import argparse
import datetime
import email.utils
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import elf_check

REPO = pathlib.Path(__file__).resolve().parent.parent
HERE = REPO / "packaging"
PROGRAMS = ("berth", "berthd", "berth-shim", "berth-sim", "berth-simgpu")
# Links to berth, which behaves as the program it is called as.
NAMES = ("gpu_manager", "gpu_resource_manager", "gpu_scheduler", "main_gpu", "main_gpus",
         "gpulimit", "gpulimitc", "gpulimit_server", "gpulimit-server")
LIBRARY = "lib/berth-sim/libnvidia-ml.so.1"
# Whose code is in the programs, and under which terms.
LINKED_IN = ("libboost-json1.81-dev", "libc6-dev", "libcli11-dev", "libfmt-dev", "libspdlog-dev",
             "libsqlite3-dev", "libstdc++-12-dev", "libyaml-cpp-dev")
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE")


def fail(text):
    sys.exit(f"package: {text}")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          capture_output=True, **options).stdout


def source_date():
    """Seconds since 1970 that all files of the packages bear."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    try:
        return int(run("git", "-C", REPO, "log", "-1", "--format=%ct"))
    except (OSError, ValueError, subprocess.CalledProcessError):
        return int((REPO / "CHANGELOG.md").stat().st_mtime)  # an export without history


def packed(data):
    """As gzip -9n: neither time nor name inside."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as file:
        file.write(data)
    return out.getvalue()


class Tree:
    """The files of a package by path: their bytes, and whether they are programs; and the links,
    to what lies beside them."""

    def __init__(self):
        self.files = {}
        self.links = {}

    def add(self, path, data, executable=False):
        self.files[str(path)] = (data if isinstance(data, bytes) else data.encode(), executable)

    def add_folder(self, source, target):
        for file in sorted(source.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                executable = os.access(file, os.X_OK)
                self.add(f"{target}/{file.relative_to(source)}", file.read_bytes(), executable)

    def moved(self, change):
        """A tree with every path changed; those whose change is None are left out."""
        other = Tree()
        for path, (data, executable) in self.files.items():
            if (to := change(path)) is not None:
                other.add(to, data, executable)
        other.links = {change(path): target for path, target in self.links.items()}
        return other


def daemon_page(build, version):
    """berthd(1): its --help as it is. The pages of berth come from berth itself."""
    text = run("berthd", "--help", executable=build / "bin" / "berthd")
    title, _, rest = text.partition("\n")
    name, _, summary = title.partition(": ")
    rest = rest.strip().replace("\\", "\\e").replace("-", "\\-")
    rest = re.sub(r"^(?=[.'])", r"\\&", rest, flags=re.M)
    return (f'.TH BERTHD 1 "" "berth {version}" "berth"\n'
            f".SH NAME\n{name} \\- {summary}\n"
            f".SH DESCRIPTION\n.nf\n{rest}\n.fi\n"
            ".SH SEE ALSO\n\\fBberth\\fR(1)\n")


def collect(build, scratch, version):
    """Everything both packages have, at the places of the tarball."""
    tree = Tree()
    for name in [f"bin/{program}" for program in PROGRAMS] + [LIBRARY]:
        stripped = scratch / pathlib.Path(name).name
        run("strip", "--strip-unneeded", "--remove-section=.comment", "-o", stripped, build / name)
        tree.add(name, stripped.read_bytes(), executable=name.startswith("bin/"))
    tree.links = {f"bin/{name}": "berth" for name in NAMES}
    berth = build / "bin" / "berth"
    run(berth, "__man", scratch / "man")
    (scratch / "man" / "berthd.1").write_text(daemon_page(build, version))
    for page in sorted((scratch / "man").glob("*.1")):
        tree.add(f"share/man/man1/{page.name}.gz", packed(page.read_bytes()))
    for shell, path in (("bash", "bash-completion/completions/berth"),
                        ("zsh", "zsh/site-functions/_berth"),
                        ("fish", "fish/vendor_completions.d/berth.fish")):
        tree.add(f"share/{path}", run(berth, "completion", shell))
    schema = REPO / "docs" / "formats" / "jobfile.schema.json"
    tree.add("share/berth/jobfile.schema.json", schema.read_bytes())
    for name in DOCUMENTS:
        tree.add(f"share/doc/berth/{name}", (REPO / name).read_bytes())
    for folder in ("docs", "examples"):
        tree.add_folder(REPO / folder, f"share/doc/berth/{folder}")
    for name in LINKED_IN:
        notice = pathlib.Path("/usr/share/doc", name, "copyright")
        if notice.exists():
            tree.add(f"share/doc/berth/third-party/{name}.gz", packed(notice.read_bytes()))
    return tree


def unit(bindir):
    return (HERE / "berth.service.in").read_text().replace("@BINDIR@", bindir)


def write_tarball(tree, path, top, date):
    tree = tree.moved(lambda name: name)
    # ~/.local/share/systemd/user is where systemd looks, if the tarball is unpacked into ~/.local.
    tree.add("share/systemd/user/berth.service", unit("%h/.local/bin"))
    raw = io.BytesIO()
    # Files alone: unpacking into a directory that exists must not change that directory.
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted([*tree.files, *tree.links]):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.mtime = date
            info.uname = info.gname = "root"
            if name in tree.links:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, tree.links[name], 0o777
                tar.addfile(info)
                continue
            data, executable = tree.files[name]
            info.size, info.mode = len(data), 0o755 if executable else 0o644
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(packed(raw.getvalue()))


def place_in_debian(path):
    """Where Debian wants a file of the tarball."""
    if path == "share/doc/berth/LICENSE":
        return None  # its file "copyright" names the common one
    path = path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/")
    return "usr/" + path


def debian_changelog(version, control, date):
    """Debian wants one in its own form; it points to ours."""
    maintainer = re.search(r"^Maintainer: (.*)$", control, re.M)[1]
    when = datetime.datetime.fromtimestamp(date, datetime.timezone.utc)
    return (f"berth ({version}) unstable; urgency=medium\n\n"
            "  * What changed is in /usr/share/doc/berth/CHANGELOG.md.\n\n"
            f" -- {maintainer}  {email.utils.format_datetime(when)}\n")


def write_deb(tree, path, version, date, scratch):
    programs = [scratch / name for name in PROGRAMS + (pathlib.Path(LIBRARY).name,)]
    glibc = "{}.{}".format(*elf_check.oldest_glibc(programs))
    tree = tree.moved(place_in_debian)
    tree.add("usr/lib/systemd/user/berth.service", unit("/usr/bin"))
    tree.add("usr/share/doc/berth/copyright", (HERE / "copyright").read_bytes())
    control = (HERE / "control.in").read_text()
    changelog = debian_changelog(version, control, date)
    tree.add("usr/share/doc/berth/changelog.gz", packed(changelog.encode()))
    overrides = (HERE / "lintian-overrides").read_bytes()
    tree.add("usr/share/lintian/overrides/berth", overrides)
    size = sum((len(data) + 1023) // 1024 for data, _ in tree.files.values())
    for key, value in (("VERSION", version), ("SIZE", size), ("GLIBC", glibc)):
        control = control.replace(f"@{key}@", str(value))
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n"
                   for name, (data, _) in sorted(tree.files.items()))
    tree.add("DEBIAN/control", control)
    tree.add("DEBIAN/md5sums", sums)
    root = scratch / "deb"
    for name, (data, executable) in tree.files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if executable else 0o644)
    for name, target in tree.links.items():
        (root / name).symlink_to(target)
    for folder in [root, *(p for p in root.rglob("*") if p.is_dir())]:
        folder.chmod(0o755)
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(date)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=REPO / "build")
    parser.add_argument("--out", type=pathlib.Path, default=REPO / "dist")
    options = parser.parse_args()
    os.umask(0o022)

    files = [options.build / "bin" / name for name in PROGRAMS] + [options.build / LIBRARY]
    if missing := [str(file) for file in files if not file.exists()]:
        fail(f"not built: {', '.join(missing)}; run ./dev build")
    if wrong := [line for file in files for line in elf_check.complaints(file)]:
        fail("these would not run elsewhere:\n  " + "\n  ".join(wrong))
    said = run(options.build / "bin" / "berth", "--version")
    if not (match := re.fullmatch(r"berth (\d+\.\d+\.\d+\S*)\n", said)):
        fail(f"berth --version says {said!r}")
    version = match[1]

    date = source_date()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="berth-package-") as name:
        scratch = pathlib.Path(name)
        tree = collect(options.build, scratch, version)
        top = f"berth-{version}-linux-x86_64"
        tarball = options.out / f"{top}.tar.gz"
        write_tarball(tree, tarball, top, date)
        print(tarball)
        if shutil.which("dpkg-deb"):
            deb = options.out / f"berth_{version}_amd64.deb"
            write_deb(tree, deb, version, date, scratch)
            print(deb)
        else:
            print("package: no dpkg-deb here, so no .deb", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(error.cmd)} failed:\n{error.stdout}{error.stderr}")
