"""The API of an instance over TCP, as browsers, scripts and attackers use it."""

import http.client
import json
import re
import socket
import ssl
import time

import berthlib


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:200]!r}>"


class Client:
    """Asks over one connection after the other; `close()` when done."""

    def __init__(self, port, *, token=None, host="127.0.0.1", context=None):
        self.port = port
        self.token = token
        self.host = host
        self.context = context
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def _connect(self):
        if self.context:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=berthlib.PATIENCE, context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=berthlib.PATIENCE)

    def ask(self, method, path, body=None, headers=None):
        """One request, exactly as given; a header of None is left out. Who asks more often than the daemon likes is told
        to wait a moment, and does: a fast machine sends thousands in a second."""
        answer = self._ask(method, path, body, headers)
        while answer.status == 429:
            time.sleep(float(answer.headers["Retry-After"]))
            answer = self._ask(method, path, body, headers)
        return answer

    def _ask(self, method, path, body, headers):
        sent = {"Host": f"{self.host}:{self.port}"}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        sent.update(headers or {})
        if self.connection is None:
            self.connection = self._connect()
        self.connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                self.connection.putheader(name, value)
        if body is not None:
            body = body.encode() if isinstance(body, str) else body
            if "Content-Length" not in sent:
                self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders(body)
        response = self.connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        if response.will_close or response.headers.get("Connection") == "close":
            self.close()
        return answer


def raw(port, text, timeout=berthlib.PATIENCE, *, to_the_end=False):
    """Sends bytes and reads until the other side closes, or the answer's header is there."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(text)
        got = b""
        while True:
            try:
                piece = connection.recv(65536)
            except ConnectionResetError:
                return got
            if not piece:
                return got
            got += piece
            if b"\r\n\r\n" in got and not to_the_end:
                return got


def status_of(answer):
    """0: there is none."""
    match = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return int(match[1]) if match else 0


def raw_status(port, text):
    """The status of what comes back; 0: nothing does."""
    return status_of(raw(port, text))


def listen(instance, **body):
    """Lets the instance listen; the answer, with the one-time link."""
    return instance.api("POST", "/api/ui", body)


def make_token(instance, scope="full", **fields):
    return instance.api("POST", "/api/tokens", {"name": "test", "scope": scope, **fields})["secret"]


def login(instance, answer=None):
    """Logs a browser in: (client, cookie, csrf)."""
    answer = answer or listen(instance)
    client = Client(answer["port"])
    path = answer["url"].split("/", 3)[3]
    entered = client.ask("GET", "/" + path)
    assert entered.status == 303, entered
    cookie = entered.headers["Set-Cookie"].split(";")[0]
    session = client.ask("GET", "/api/session", headers={"Cookie": cookie}).json()
    return client, cookie, session["csrf"]


def routes(instance):
    """(method, path, scope) of every route, from the program itself."""
    code, text = instance.run_daemon(args=["--routes"])
    assert code == 0, text
    return [tuple(line.split()) for line in text.splitlines()]


def concrete(path):
    """The path with something in the place of its parameters."""
    return re.sub(r"\{\w+\}", "1", path)


def trusting(certificate):
    return ssl.create_default_context(cafile=str(certificate))


def token_file(tmp_path, secret, name="token"):
    path = tmp_path / name
    path.write_text(secret + "\n")
    path.chmod(0o600)
    return path


def way_to(instance, tmp_path, scope="full"):
    """The options that lead to the instance over TCP."""
    file = tmp_path / f"token-{scope}"
    if not file.exists():
        token_file(tmp_path, make_token(instance, scope), file.name)
    port = instance.api("GET", "/api/listen")["port"] or listen(instance)["port"]
    return ["--server", f"http://127.0.0.1:{port}", "--token-file", str(file)]


def remote(instance, tmp_path, *words, check=None, scope="full", env=None, **run):
    """Runs `berth --server` as from another machine: with no way to the instance's directory."""
    return instance.cli(*way_to(instance, tmp_path, scope), *words, check=check,
                        env={"BERTH_DIR": str(tmp_path / "elsewhere"), **(env or {})}, **run)
