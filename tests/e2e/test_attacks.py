"""Every route, tried in every way that must not work.

The table of routes comes from the program, so a new route is attacked from the day it is there. The pages of the
console, which are open to all, are attacked with them.
"""

import re
import select
import socket
import time

import pytest
import yaml

import berthlib
import tcp

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
LOOKS = ("GET", "HEAD")
PAGES = ("/", "/ui", "/ui/jobs", "/ui/assets/none.js", "/favicon.ico")
REFUSED = range(400, 500)
PATIENCE_MS = 1500
LOG_SIZE = 4_000_000
DESCRIPTION = yaml.safe_load((berthlib.REPO / "docs" / "openapi.yaml").read_text())["paths"]


class Target:
    def __init__(self, instance):
        self.instance = instance
        self.port = tcp.listen(instance)["port"]
        self.full = tcp.make_token(instance)
        self.read = tcp.make_token(instance, "read")
        self.routes = tcp.routes(instance)
        assert len(self.routes) > 20
        self.paths = sorted({path for _, path, _ in self.routes}) + list(PAGES)
        self.every = [(method, path) for path in self.paths for method in METHODS]
        self.has_pages = instance.api("GET", "/api/listen")["console"]

    def client(self, token=None):
        return tcp.Client(self.port, token=token)

    def scope(self, method, path):
        """What the table asks for; None: there is no such route."""
        if path in PAGES:
            return "open"
        if method == "HEAD" and path != "/login":
            method = "GET"
        return next((s for m, p, s in self.routes if (m, p) == (method, path)), None)

    def open_answers(self, method, path):
        """What whoever has no key gets where none is needed."""
        if path == "/login":
            return [403]  # without a code
        if method not in LOOKS:
            return [405]
        if path == "/":
            return [303]
        return [404] if path.endswith(".js") or not self.has_pages else [200, 404] if "." in path else [200]

    def without_key(self, method, path):
        return self.open_answers(method, path) if self.scope(method, path) == "open" else [401]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    instance = berthlib.Instance(tmp_path_factory.mktemp("attacks"))
    instance.dir.mkdir(parents=True, exist_ok=True)
    commands = tmp_path_factory.mktemp("commands")
    (instance.dir / "berth.yaml").write_text(f"command_dir: {commands}\n")
    instance.start({"BERTH_TEST_TCP_PATIENCE_MS": str(PATIENCE_MS)})
    try:
        # Whoever gets through a hole would find something.
        instance.wait(instance.submit(berthlib.job(f"head -c {LOG_SIZE} /dev/zero | tr '\\0' x", name="bait")))
        yield Target(instance)
        assert instance.running(), "the daemon did not survive this\n" + instance.log_tail()
        assert not list(commands.rglob("*.txt")), "nobody has made a command file"
    finally:
        instance.close(keep=False)


def check(target, token, expected, headers=None):
    """Asks with the token; `expected` says what must come back, None that it is not asked."""
    client = target.client(token)
    wrong = []
    for method, path in target.every:
        wanted = expected(method, path)
        if wanted is None:
            continue
        status = client.ask(method, tcp.concrete(path), headers=headers).status
        if status not in wanted:
            wrong.append(f"{method} {path}: {status}, not {wanted}")
    client.close()
    assert not wrong, "\n".join(wrong)


# --- who asks -------------------------------------------------------------------------------------


def test_nothing_is_told_or_done_without_a_token(target):
    check(target, None, target.without_key)


@pytest.mark.parametrize("token", ["", "x", "berth_" + "0" * 64])
def test_a_wrong_token_is_none(target, token):
    check(target, None, target.without_key, {"Authorization": f"Bearer {token}"})


def test_a_wrong_kind_of_credentials_is_none(target):
    for value in (f"Basic {target.full}", target.full, f"Bearer {target.full} x",
                  f"Bearer {target.full}, Bearer {target.full}"):
        answer = target.client().ask("GET", "/api/status", headers={"Authorization": value})
        assert answer.status == 401, value
    for cookie in (f"berth_session={target.full}", f"berth_session_x={target.full}"):
        assert target.client().ask("GET", "/api/status", headers={"Cookie": cookie}).status == 401


def test_a_read_only_token_changes_nothing(target):
    def expected(method, path):
        scope = target.scope(method, path)
        if scope == "open":
            return target.open_answers(method, path)
        if scope == "full":
            return [403]
        if scope is None:  # no such route: what is not a look is refused before that is told
            return [405] if method in LOOKS else [403]
        return None  # what it may do, and may take for ever

    check(target, target.read, expected)


def test_a_cookie_alone_changes_nothing(target):
    client, cookie, csrf = tcp.login(target.instance)
    client.close()

    def expected(method, path):
        if path in PAGES:
            return target.open_answers(method, path)
        return None if method in LOOKS else [403]

    for word in (None, "", "0" * 64, csrf[:-1], csrf + "0"):
        check(target, None, expected, {"Cookie": cookie, "X-Berth-CSRF": word})

    def foreign(method, path):
        if path == "/login":
            return [303] if method == "GET" else [403]
        return target.open_answers(method, path) if path in PAGES else [403]

    for site in ("cross-site", "same-site"):
        check(target, None, foreign, {"Cookie": cookie, "X-Berth-CSRF": csrf, "Sec-Fetch-Site": site})


def test_no_page_of_another_origin_gets_anything(target):
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{target.port + 1}"):
        check(target, target.full, lambda method, path: [403], {"Origin": origin})


def test_no_other_name_is_answered_to(target):
    for host in (f"evil.example:{target.port}", "127.0.0.1.evil.example", None):
        check(target, target.full, lambda method, path: [421], {"Host": host})
    for method, path in target.every:
        text = f"{method} {tcp.concrete(path)} HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"
        assert tcp.raw_status(target.port, text.encode()) == 421, (method, path)


# --- where to -------------------------------------------------------------------------------------


TRAVERSALS = ("/../../../../etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd",
              "//etc/passwd", "/....//....//etc/passwd", "/..;/..;/etc/passwd", "/%00", "/..%5c..%5c")


def test_no_path_leads_out(target):
    for token in (None, target.full):
        client = target.client(token)
        for method, path in target.every:
            for way_out in TRAVERSALS:
                at = tcp.concrete(path) + way_out
                if way_out == "/%00":
                    wanted = [400]
                elif at.startswith("/ui/"):
                    wanted = [404] if method in LOOKS else [405]
                elif token is None:
                    wanted = [401]
                elif (method, way_out) == ("DELETE", "/..%5c..%5c"):
                    wanted = [400, 404]  # /api/commands/{mode}/{index} takes it for a number
                else:
                    wanted = [404, 405]
                answer = client.ask(method, at)
                assert b"root:" not in answer.body, (method, at)
                assert answer.status in wanted, (method, at, answer)
        client.close()


PARAMETERS = ("..%2f..%2fetc%2fpasswd", "%2e%2e", "-1", "99999999999999999999", "1%00", "%ff", "1;2", "single%2f..")


def test_parameters_that_are_paths_lead_nowhere(target):
    client = target.client(target.full)
    for path in target.paths:
        names = re.findall(r"\{\w+\}", path)
        for name in names:
            for value in PARAMETERS:
                at = path.replace(name, value).replace("{mode}", "single")
                for method in METHODS:
                    answer = client.ask(method, tcp.concrete(at))
                    assert answer.status in (400, 404, 405), (method, at, answer)
                    assert b"root:" not in answer.body
    client.close()


# --- what is sent ---------------------------------------------------------------------------------


def test_what_is_too_large_is_refused_before_it_is_read(target):
    huge = b"Content-Length: 1000000000000\r\n"
    stream = b"Content-Type: application/x-ndjson\r\n" + huge
    key = f"Authorization: Bearer {target.full}\r\n".encode()
    for method, path in target.every:
        line = f"{method} {tcp.concrete(path)} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
        is_open = target.scope(method, path) == "open"
        for header, wanted in (
            (huge, 403 if is_open else 401),
            (key + huge, 403 if is_open else 413),
            (key + stream, 403 if is_open else 413),
            (b"X: " + b"a" * 20_000 + b"\r\n", 431),
            (b"X: a\r\n" * 3_000, 431),
        ):
            status = tcp.raw_status(target.port, line + header + b"\r\n")
            assert status == wanted, (method, path, header[:60], status)


HOST = "Host: 127.0.0.1\r\n"
MALFORMED = (
    "{method} {path} HTTP/9.9\r\n" + HOST,
    "{method} {path}\r\n" + HOST,
    "{method} {path} x HTTP/1.1\r\n" + HOST,
    "{method} http://127.0.0.1{path} HTTP/1.1\r\n" + HOST,
    "{method} {path}%zz HTTP/1.1\r\n" + HOST,
    "{method} {path}\x00 HTTP/1.1\r\n" + HOST,
    "{method} {path} HTTP/1.1\r\nHost : 127.0.0.1\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "no colon\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "X: folded\r\n line\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "Content-Length: -1\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "Content-Length: 1\r\nContent-Length: 2\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "Transfer-Encoding: xchunked\r\n",
    "{method} {path} HTTP/1.1\r\n" + HOST + "Transfer-Encoding: chunked, identity\r\n",
)


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_not_http_is_refused_and_nothing_behind_it_is_read(target, text):
    key = f"Authorization: Bearer {target.full}\r\n"
    behind = f"GET /api/session HTTP/1.1\r\n{HOST}{key}\r\n"
    for method, path in target.every:
        request = text.format(method=method, path=tcp.concrete(path)) + key + "\r\n" + behind
        answer = tcp.raw(target.port, request.encode(), to_the_end=True)
        assert tcp.status_of(answer) == 400, (method, path, answer)
        assert answer.count(b"HTTP/1.1 ") == 1, (method, path, answer)


@pytest.mark.parametrize("text", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the beginning of TLS
    b"GET\r\n\r\n",
    b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n",
    b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"\r\n" * 20_000,
], ids=range(5))
def test_what_is_not_even_a_request_is_refused(target, text):
    status = tcp.raw_status(target.port, text)
    assert status in REFUSED or status == 0, status


BODIES = (b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"no_such_field": 1}',
          b'{"ids": {"a": 1}, "jobs": 3, "name": 5}', b"[" * 100_000)
# They take no body, and do what they say whatever comes with them.
BARE = {"/api/stop", "/api/ui/stop", "/api/commands/{mode}/new"}
# They do with less, or have it in the query.
MAY_TAKE_ONE = {("/api/log/bind", "POST"), ("/api/log/bind", "DELETE"), ("/api/ui", "POST")}
ENDLESS = {"/api/stream", "/api/jobs/{id}/log/stream"}


def test_bodies_that_make_no_sense_change_nothing(target):
    client = target.client(target.full)
    for method, path in target.every:
        if (path in BARE and method == "POST") or (path in ENDLESS and method == "GET"):
            continue
        # Of tokens not the one that is used.
        at = tcp.concrete(path.replace("{mode}", "single").replace("/api/tokens/{id}", "/api/tokens/999"))
        described = DESCRIPTION.get(path, {}).get(method.lower(), {})
        takes_body = "requestBody" in described and (path, method) not in MAY_TAKE_ONE
        bare = None if takes_body else client.ask(method, at).status
        for body in BODIES:
            answer = client.ask(method, at, body)
            if takes_body:
                assert answer.status in (400, 413, 422), (method, path, body[:40], answer)
            elif target.scope(method, path) == "open" and body:
                assert answer.status == 403, (method, path, body[:40], answer)
            elif (path, method) in MAY_TAKE_ONE and body:
                assert answer.status in REFUSED, (method, path, body[:40], answer)
            else:
                assert answer.status == bare, (method, path, body[:40], answer)
        answer = client.ask(method, at, b"zz\r\n", {"Transfer-Encoding": "chunked", "Content-Length": None})
        assert answer.status == (403 if target.scope(method, path) == "open" else 400), (method, path, answer)
    client.close()


def resident(instance):
    """How many bytes the daemon has in memory."""
    with open(f"/proc/{instance.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def chunked(target, method, path, rest, kind="application/json"):
    """What comes of a chunked body of which this is all; the sender may be cut off."""
    head = (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {target.read}\r\n"
            f"Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", target.port), berthlib.PATIENCE) as connection:
        try:
            connection.sendall(head + rest)
        except OSError:
            return 431
        got = connection.recv(65536)
    return tcp.status_of(got)


@pytest.mark.parametrize("rest", [
    b"0\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    b"0\r\n" + b"X: aaaaaaaa\r\n" * 3_000_000 + b"\r\n",
    b"1;x=" + b"a" * 40_000_000 + b"\r\nx\r\n0\r\n\r\n",
    b"1" + b" " * 40_000_000 + b"\r\nx\r\n0\r\n\r\n",
], ids=["a long trailer", "many trailers", "a long extension", "a long chunk line"])
def test_what_stands_beside_the_chunks_has_its_limits(target, rest):
    before = resident(target.instance)
    for method, path in (("GET", "/health"), ("POST", "/api/done")):
        assert chunked(target, method, path, rest) in (400, 431, 0), (method, path)
    assert chunked(target, "POST", "/api/jobs", rest, "application/x-ndjson") in (403, 0)
    assert target.instance.running(), target.instance.log_tail()
    assert resident(target.instance) - before < 16_000_000


def test_a_header_that_comes_twice_is_none_of_the_two(target):
    def ask(*headers):
        lines = "".join(f"{line}\r\n" for line in headers)
        head = f"POST /api/done HTTP/1.1\r\nAuthorization: Bearer {target.full}\r\n{lines}"
        return tcp.raw_status(target.port, (head + "Content-Length: 11\r\n\r\n{\"jobs\":[]}").encode())

    ours = f"http://localhost:{target.port}"
    host = f"Host: localhost:{target.port}"
    assert ask(host, f"Origin: {ours}") == 200
    assert ask("Host:", host) == 421
    assert ask(host, "Origin:", f"Origin: {ours}") == 403
    assert ask(host, "Authorization:") == 401
    head = f"POST /api/done HTTP/1.1\r\n{host}\r\nAuthorization: Bearer {target.full}\r\n"
    body = "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{\"jobs\":[]}\r\n0\r\n\r\n"
    assert tcp.raw_status(target.port, (head + body).encode()) == 400


def test_a_token_that_is_revoked_ends_a_request_that_is_being_sent(target):
    made = target.instance.api("POST", "/api/tokens", {"name": "late", "scope": "full"})
    body = b'{"queue": "default"}'
    head = (f"POST /api/jobs/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {made['secret']}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", target.port), berthlib.PATIENCE) as connection:
        connection.sendall(head + body[:3])
        # The daemon has read so far when it answers others.
        assert target.client(target.full).ask("GET", "/api/session").status == 200
        target.instance.api("DELETE", f"/api/tokens/{made['token']['id']}")
        try:
            connection.sendall(body[3:])
            answer = connection.recv(65536)
        except OSError:
            answer = b""
    assert answer == b""
    [queue] = target.instance.api("GET", "/api/queues")["queues"]
    assert queue["name"] == "default" and not queue["paused"]


# --- how fast -------------------------------------------------------------------------------------


def test_slow_clients_are_cut(target):
    """All routes and methods at once, each with a header and with a body that never ends."""
    connections = []
    for method, path in target.every:
        head = f"{method} {tcp.concrete(path)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        with_body = head + f"Authorization: Bearer {target.full}\r\nContent-Length: 1000\r\n\r\n"
        for text in (head, with_body):
            slow = socket.create_connection(("127.0.0.1", target.port), berthlib.PATIENCE)
            slow.sendall(text.encode())
            connections.append(slow)
        if len(connections) >= 400:
            wait_until_cut(connections)
    wait_until_cut(connections)


def wait_until_cut(connections):
    """A byte now and then helps none of them."""
    deadline = time.monotonic() + berthlib.PATIENCE
    while connections:
        assert time.monotonic() < deadline, f"{len(connections)} were not cut"
        for connection in list(connections):
            try:
                connection.sendall(b"x")
                readable = select.select([connection], [], [], 0)[0]
                cut = bool(readable) and not still_open(connection)
            except OSError:
                cut = True
            if cut:
                connection.close()
                connections.remove(connection)
        time.sleep(0.2)


def still_open(connection):
    """Reads what there is; false at the end."""
    try:
        return bool(connection.recv(65536))
    except OSError:
        return False


def connect_narrow(port):
    """A connection on which little is on its way at a time."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(berthlib.PATIENCE)
    connection.connect(("127.0.0.1", port))
    return connection


def read_to_the_end(connection, piece=65536, pause=0.0):
    got = b""
    try:
        while more := connection.recv(piece):
            got += more
            time.sleep(pause)
    except ConnectionResetError:
        pass
    return got


def test_whoever_does_not_fetch_answers_is_cut(target):
    """On every route that has something to read, with as many requests as no buffer has room for the answers."""
    client = target.client(target.full)
    asked = []
    for method, path, _ in target.routes:
        if method != "GET" or path in ENDLESS:
            continue
        at = tcp.concrete(path.replace("{mode}", "single"))
        size = len(client.ask("GET", at).body) + 500
        count = min(1000, 600_000 // size + 2)
        text = f"GET {at} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {target.full}\r\n\r\n"
        connection = connect_narrow(target.port)
        connection.sendall(text.encode() * count)
        asked.append((path, count, connection))
    client.close()
    time.sleep(3 * PATIENCE_MS / 1000)
    for path, count, connection in asked:
        answers = read_to_the_end(connection).count(b"HTTP/1.1 ")
        connection.close()
        assert answers < count, f"{path}: all {count} answers have waited"


def test_whoever_fetches_slowly_gets_everything(target):
    key = f"Host: 127.0.0.1\r\nAuthorization: Bearer {target.full}\r\nConnection: close\r\n"
    with socket.create_connection(("127.0.0.1", target.port), berthlib.PATIENCE) as connection:
        connection.sendall(f"GET /api/jobs/1/log HTTP/1.1\r\n{key}\r\n".encode())
        begun = time.monotonic()
        got = read_to_the_end(connection, 65536, 0.06)
    assert got.count(b"x") >= LOG_SIZE and got.endswith(b"\r\n0\r\n\r\n")
    assert time.monotonic() - begun > 2 * PATIENCE_MS / 1000


def test_strangers_keep_nobody_out(target):
    """More connections with half a header than there may be, and whoever has a key gets in all the same."""
    known = target.client(target.full)
    assert known.ask("GET", "/api/session").status == 200
    strangers = []
    try:
        for number in range(700):
            stranger = socket.create_connection(("127.0.0.1", target.port), berthlib.PATIENCE)
            stranger.sendall(b"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            strangers.append(stranger)
            if number > 500 and number % 10 == 0:
                newcomer = target.client(target.full)
                assert newcomer.ask("GET", "/api/session").status == 200, number
                newcomer.close()
                assert known.ask("GET", "/api/session").status == 200, number
    finally:
        for stranger in strangers:
            stranger.close()
        known.close()


def test_the_daemon_is_well_after_all_this(target):
    answer = target.client(target.full).ask("GET", "/api/status")
    assert answer.status == 200
    jobs = target.instance.jobs()
    assert [job["name"] for job in jobs] == ["bait"], "nobody has added a job"
