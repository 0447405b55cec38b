"""Programs on a terminal, and what is to be seen there."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata

from berthlib import PATIENCE, eventually


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, env, rows=24, columns=80, cwd=None):
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pid, self.fd = pty.fork()
        if pid == 0:
            try:
                if cwd:
                    os.chdir(cwd)
                os.execvpe(command[0], command, env)
            finally:
                os._exit(127)
        self.pid = pid
        self.code = None
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout):
        """What has come; None once there will be no more."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return ""
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return None
        text = self.decoder.decode(piece)
        self.text += text
        return text if piece else None

    def expect(self, what, timeout=PATIENCE):
        """Reads until the pattern has come; returns what came up to its end and forgets that."""
        until = time.monotonic() + timeout
        while not (found := re.search(what, self.text)):
            left = until - time.monotonic()
            assert left > 0, f"no {what!r} in {self.text!r}"
            assert self.read(left) is not None or re.search(what, self.text), (
                f"ended without {what!r}: {self.text!r}"
            )
        before, self.text = self.text[: found.end()], self.text[found.end() :]
        return before

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def finish(self, timeout=PATIENCE):
        """Everything up to the end; the exit code is in `code`."""
        until = time.monotonic() + timeout
        while self.read(max(0.0, until - time.monotonic())) is not None:
            assert time.monotonic() < until, f"it does not end: {self.text!r}"
        self.wait()
        return self.text

    def wait(self):
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def close(self):
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self.fd)


class Screen:
    """What the sequences that `berth top` draws with make of a screen; unknown ones are errors."""

    SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")

    def __init__(self, rows, columns):
        self.alternate = False
        self.cursor_shown = True
        self.rest = ""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.at = (0, 0)
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                found = self.SEQUENCE.match(text)
                if not found:
                    assert len(text) < 20, f"not a sequence: {text[:20]!r}"
                    self.rest = text
                    return
                self.obey(*found.groups())
                text = text[found.end() :]
            else:
                self.put(text[0])
                text = text[1:]

    def obey(self, private, numbers, letter):
        if private:
            if numbers == "1049":
                self.alternate = letter == "h"
            elif numbers == "25":
                self.cursor_shown = letter == "h"
        elif letter == "H":
            row, column = (int(n) for n in (numbers or "1;1").split(";"))
            self.at = (row - 1, column - 1)
        elif letter == "J":
            self.clear()
        elif letter == "K":
            if self.at[0] < self.rows:
                for column in range(self.at[1], self.columns):
                    self.cells[self.at[0]][column] = " "
        else:
            assert letter == "m", f"unknown sequence {numbers}{letter}"

    def put(self, sign):
        row, column = self.at
        width = 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        if row < self.rows and column < self.columns:
            self.cells[row][column] = sign
            if width == 2 and column + 1 < self.columns:
                self.cells[row][column + 1] = ""
        self.at = (row, column + width)

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())


class ScreenTerminal(Terminal):
    """A full-screen program and what it shows."""

    def __init__(self, command, env, rows=24, columns=80, cwd=None):
        self.held = None
        self.screen = Screen(rows, columns)
        super().__init__(command, env, rows, columns, cwd)

    def read(self, timeout):
        piece = super().read(timeout)
        self.screen.feed(piece or "")
        return piece

    def sees(self, pattern, timeout=PATIENCE):
        """Waits until the screen shows it; returns the match."""

        def look():
            while self.read(0.02):
                pass
            return re.search(pattern, self.screen.text(), re.MULTILINE)

        try:
            return eventually(look, pattern, timeout)
        except AssertionError as error:
            raise AssertionError(f"no {pattern!r} on\n{self.screen.text()}") from error

    def resize(self, rows, columns):
        while self.read(0.02):
            pass
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hold(self):
        """Keeps the terminal when the program has gone, so that mode() can be looked at."""
        self.held = os.open(os.readlink(f"/proc/{self.pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)

    def mode(self):
        """Of the terminal: (whether it reads by lines, whether it echoes)."""
        flags = termios.tcgetattr(self.held)[3]
        return bool(flags & termios.ICANON), bool(flags & termios.ECHO)

    def ended(self):
        """Waits for the end of a program whose terminal is held; its exit code."""

        def look():
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return pid

        eventually(look, "the end of the program")
        while self.read(0.02):
            pass
        return self.code

    def close(self):
        if self.held is not None:
            os.close(self.held)
        super().close()
