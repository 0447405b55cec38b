#!/usr/bin/python3
"""What a program asks of the machine it runs on.

    elf_check.py FILE…      prints what is wrong with them; exit code 1 if anything is

Berth's programs may need glibc and nothing else, and of glibc no symbol newer than 2.35, which is
the one of Ubuntu 22.04.
"""

import re
import subprocess
import sys

NEWEST_GLIBC = (2, 35)
# libpthread, libdl and librt have been part of libc.so.6 since glibc 2.34.
GLIBC_LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def readelf(option, path):
    return subprocess.run(
        ["readelf", "--wide", option, str(path)],
        check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout


def needed_libraries(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", path))


def search_paths(path):
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", readelf("--dynamic", path))


def needed_versions(path):
    """The versions it wants of its libraries' symbols: GLIBC_2.34, GLIBC_ABI_DT_RELR, …"""
    section = readelf("--version-info", path).partition("Version needs section")[2]
    return set(re.findall(r"Name: (\S+)", section))


def symbols_of(path, version):
    found = re.findall(r"(\S+)@" + re.escape(version) + r"(?:\s|$)", readelf("--dyn-syms", path))
    return sorted(set(found))


def glibc_number(version):
    """(2, 34) of GLIBC_2.34; None if it is no such version."""
    match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version)
    return (int(match[1]), int(match[2])) if match else None


def oldest_glibc(paths):
    """The oldest glibc on which all of them run."""
    numbers = [glibc_number(v) for path in paths for v in needed_versions(path)]
    return max((n for n in numbers if n), default=(2, 2))


def complaints(path):
    found = []
    for library in needed_libraries(path):
        if library not in GLIBC_LIBRARIES:
            found.append(f"{path} needs {library}, which is not part of glibc")
    for directory in search_paths(path):
        found.append(f"{path} looks for libraries in '{directory}'")
    for version in sorted(needed_versions(path)):
        number = glibc_number(version)
        if number is None or number > NEWEST_GLIBC:
            symbols = ", ".join(symbols_of(path, version)) or "the file as a whole"
            found.append(f"{path} needs {version}: {symbols}")
    return found


if __name__ == "__main__":
    wrong = [line for path in sys.argv[1:] for line in complaints(path)]
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))
