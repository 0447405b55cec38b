"""Machines in trouble: mounts that hang, disks that are full, clocks that jump, ordinary users."""

import contextlib
import ctypes
import errno
import os
import pathlib
import select
import shutil
import struct
import subprocess
import tempfile
import threading

import pytest

from berthlib import BIN, Instance

NOBODY = 65534

# --- a user who may not do everything -------------------------------------------------------------


class Stranger(Instance):
    """An instance of an ordinary user: of `nobody` where the tests run as root, who may do all."""

    def __init__(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
        super().__init__(self.base)
        if os.geteuid() != 0:
            return
        self.base.chmod(0o755)
        real, wrapped = self.base / "real", self.base / "wrapped"
        real.mkdir()
        wrapped.mkdir()
        for program in ("berth", "berthd", "berth-shim"):
            shutil.copy2(BIN / program, real)
            (real / program).chmod(0o755)
            become = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
            (wrapped / program).write_text(f'#!/bin/sh\nexec {become} {real}/{program} "$@"\n')
            (wrapped / program).chmod(0o755)
        self.bin_dir = wrapped
        self.dir.mkdir(mode=0o700)
        os.chown(self.dir, NOBODY, NOBODY)


@contextlib.contextmanager
def stranger():
    berth = Stranger()
    try:
        berth.start()
        yield berth
    finally:
        berth.close()
        shutil.rmtree(berth.base, ignore_errors=True)


# --- a clock that jumps ---------------------------------------------------------------------------

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  char text[32] = "";
  int fd = open(CLOCK_FILE, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
    close(fd);
  }
  return atol(text);
}
int clock_gettime(clockid_t id, struct timespec* at) {
  int result = (int)syscall(SYS_clock_gettime, id, at);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
  return result;
}
int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


class JumpingClock:
    """A library that shows whoever preloads it another wall clock; jump() sets it at any time."""

    def __init__(self, directory):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler to make a clock that jumps")
        self.offset = directory / "offset"
        self.jump(0)
        source, library = directory / "clock.c", directory / "clock.so"
        source.write_text(CLOCK)
        where = f'-DCLOCK_FILE="{self.offset}"'
        command = [compiler, "-shared", "-fPIC", "-O1", where, "-o", library, source]
        subprocess.run(command, check=True)
        self.environment = {"LD_PRELOAD": str(library)}

    def jump(self, seconds):
        fresh = self.offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.rename(self.offset)


# --- mounts ---------------------------------------------------------------------------------------

MNT_DETACH = 2


def libc_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount_or_skip(kind, where, options):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    try:
        libc_call("mount", b"berth-test", os.fsencode(where), kind, 0, options.encode())
    except OSError as error:
        pytest.skip(f"this machine does not let root mount: {error}")


class HungMount:
    """A FUSE file system that says hello and then takes every request without ever answering."""

    INIT = 26

    def __init__(self, where):
        self.where = where
        try:
            self.device = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            pytest.skip(f"FUSE cannot be used here: {error}")
        try:
            options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
            mount_or_skip(b"fuse", where, options)
        except BaseException:
            os.close(self.device)
            raise
        self.asked, self.stop = os.pipe()
        self.requests = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            ready, _, _ = select.select([self.device, self.asked], [], [])
            if self.asked in ready:
                return
            try:
                request = os.read(self.device, 1 << 17)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EINTR, errno.ENOENT):
                    continue
                return  # unmounted
            _, operation, unique = struct.unpack_from("<IIQ", request)
            if operation == self.INIT:
                # Version 7.31; the smallest sizes, no features.
                answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
                os.write(self.device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
            else:
                self.requests += 1

    def let_go(self):
        """Closing the device ends the connection, and with it every request."""
        if self.device >= 0:
            os.write(self.stop, b"x")
            self.thread.join()
            for descriptor in (self.device, self.asked, self.stop):
                os.close(descriptor)
            self.device = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_go()
        libc_call("umount2", os.fsencode(self.where), MNT_DETACH)


class SmallDisk:
    """A file system of 96 MiB with an instance on it."""

    def __init__(self):
        self.where = pathlib.Path(tempfile.mkdtemp(prefix="berth-disk-", dir="/tmp"))
        try:
            mount_or_skip(b"tmpfs", self.where, "size=96m,mode=755")
        except BaseException:
            self.where.rmdir()
            raise
        self.berth = Instance(self.where)
        self.berth.log = pathlib.Path(f"{self.where}.log")  # it does not share the trouble

    def fill(self):
        """To the last byte."""
        with open(self.where / "filler", "ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        filler.write(b"x" * size)

    def free(self):
        (self.where / "filler").unlink()

    def __enter__(self):
        self.berth.start()
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is not None:
                print(f"--- the daemon's last words\n{self.berth.log_tail()}")
            self.berth.close()
        finally:
            libc_call("umount2", os.fsencode(self.where), MNT_DETACH)
            self.where.rmdir()
            self.berth.log.unlink(missing_ok=True)
