"""The way in over TCP: listening, logging in, tokens, TLS, and `berth --server`."""

import gzip
import json
import os
import pathlib
import re
import socket
import ssl
import stat
import subprocess

import pytest

import berthlib
import tcp
from berthlib import eventually
from tcp import login, remote, token_file


# --- listening ------------------------------------------------------------------------------------


def listening_sockets(pid):
    """Whether the process has a listening TCP socket."""
    inodes = set()
    for family in ("tcp", "tcp6"):
        for line in berthlib.read_bytes(f"/proc/{pid}/net/{family}").decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                inodes.add(f"socket:[{fields[9]}]")
    links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return sum(link in inodes for link in links)


def test_nothing_listens_until_asked_for(berth):
    assert berth.api("GET", "/api/listen")["listening"] is False
    assert listening_sockets(berth.pid) == 0
    answer = berth.cli("ui", "--print", check=0)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?code=[0-9a-f]{64}\n", answer.stdout)
    assert listening_sockets(berth.pid) == 1
    listen = berth.api("GET", "/api/listen")
    assert listen["listening"] and listen["address"] == "127.0.0.1"
    assert listen["source"] == "berth ui"
    berth.cli("ui", "--stop", check=0)
    eventually(lambda: listening_sockets(berth.pid) == 0, "it listens no longer")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", listen["port"]), 5)


def test_a_second_instance_takes_the_next_port_and_says_so(make_instance):
    first, second = make_instance(), make_instance()
    first.start()
    second.start()
    port = tcp.listen(first)["port"]
    answer = second.cli("ui", "--print", check=0)
    other = second.api("GET", "/api/listen")["port"]
    assert other > 29214 and other != port
    assert f"listening on port {other}" in answer.stderr
    for instance, at in ((first, port), (second, other)):
        client = tcp.Client(at, token=tcp.make_token(instance))
        assert client.ask("GET", "/api/status").json()["instance"] == str(instance.dir)


def test_a_port_that_was_named_is_that_one_or_none(berth):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = berth.cli("ui", "--print", "--port", port, check=1)
        assert f"port {port}" in refused.stderr and "taken" in refused.stderr
    assert berth.api("GET", "/api/listen")["listening"] is False
    berth.cli("ui", "--print", "--port", port, check=0)
    assert berth.api("GET", "/api/listen")["port"] == port


def test_what_was_asked_for_outlives_the_daemon(berth):
    client, cookie, _ = login(berth)
    client.close()
    berth.stop()
    berth.start()
    eventually(lambda: berth.api("GET", "/api/listen")["listening"], "it listens again")
    assert berth.api("GET", "/api/listen")["port"] == client.port
    assert client.ask("GET", "/api/status", headers={"Cookie": cookie}).status == 200


def test_a_port_that_somebody_took_meanwhile_is_told_until_one_says_where_to_stay(berth):
    old = tcp.listen(berth)["port"]
    berth.stop()
    with socket.create_server(("127.0.0.1", old)):
        berth.start()
        listen = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
        assert listen["port"] > old and f"port {old} is somebody else's" in listen["problem"]
        health = berth.api("GET", "/health")
        assert health["status"] == "degraded" and f"port {old}" in str(health["reasons"])
        berth.cli("ui", "--print", check=0)
        assert berth.api("GET", "/api/listen")["problem"], "a link says nothing about the port"
        berth.cli("ui", "--print", "--port", listen["port"], check=0)
        assert berth.api("GET", "/api/listen")["problem"] is None
        assert berth.api("GET", "/health")["reasons"] == []
    berth.stop()
    berth.start()
    again = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
    assert again["port"] == listen["port"] and again["problem"] is None


def test_berth_yaml_says_where_to_listen_and_may_forbid_it(berth):
    settings = berth.dir / "berth.yaml"
    settings.write_text("listen: on\n")
    listen = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
    assert listen["source"] == "berth.yaml"
    status = berth.cli("status", check=0).stdout
    moved = listen["port"] != 29214
    assert f"listening: {listen['url']}{' (the usual port is taken)' * moved}\n" in status
    assert "berth.yaml" in berth.cli("ui", "--stop", check=1).stderr
    settings.write_text("listen: off\n")
    eventually(lambda: not berth.api("GET", "/api/listen")["listening"], "it listens no longer")
    assert "listening" not in berth.cli("status", check=0).stdout
    assert "listen: off" in berth.cli("ui", "--print", check=1).stderr


def test_what_kept_it_from_listening_may_go(berth, certificate):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (berth.dir / "berth.yaml").write_text(f"listen: {port}\n")
        eventually(lambda: "taken" in (berth.api("GET", "/api/listen")["problem"] or ""), "it says why not")
        assert "taken" in berth.cli("ui", "--print", check=1).stderr
    assert f":{port}/login" in berth.cli("ui", "--print", check=0).stdout, "it is tried at once"
    assert berth.api("GET", "/api/listen")["problem"] is None

    # Without anybody asking it takes seconds.
    cert, key = certificate
    key.chmod(0o644)
    (berth.dir / "berth.yaml").write_text(f"listen:\n  port: {port}\n  certificate: {cert}\n  key: {key}\n")
    eventually(lambda: "chmod" in (berth.api("GET", "/api/listen")["problem"] or ""), "it says why not")
    key.chmod(0o600)
    eventually(lambda: berth.api("GET", "/api/listen")["listening"], "it listens")
    assert berth.api("GET", "/health")["reasons"] == []


def test_a_usual_port_that_is_taken_is_told(make_instance):
    first, second = make_instance(), make_instance()
    first.start()
    port = tcp.listen(first)["port"]
    second.start()
    (second.dir / "berth.yaml").write_text("listen: on\n")
    listen = eventually(lambda: (v := second.api("GET", "/api/listen"))["listening"] and v, "it listens")
    assert listen["port"] != port and "somebody else's" in listen["problem"]
    assert listen["problem"] in str(second.api("GET", "/health")["reasons"])
    (second.dir / "berth.yaml").write_text(f"listen: {listen['port']}\n")
    eventually(lambda: second.api("GET", "/api/listen")["problem"] is None, "that settles it")


def test_beyond_this_machine_nothing_is_served_in_the_open(berth):
    (berth.dir / "berth.yaml").write_text("listen: 0.0.0.0\n")
    eventually(lambda: "certificate" in berth.log_text(), "it says why not")
    assert listening_sockets(berth.pid) == 0
    eventually(
        lambda: "certificate" in (berth.api("GET", "/api/listen")["problem"] or ""), "here, too")


def test_head_is_a_get_without_its_body(berth):
    client = tcp.Client(tcp.listen(berth)["port"], token=tcp.make_token(berth))
    berth.wait(berth.submit(berthlib.job("echo hello")))
    for method, path, _ in tcp.routes(berth):
        if method != "GET" or path == "/login":
            continue
        head = client.ask("HEAD", tcp.concrete(path))
        assert head.body == b""
        if "stream" in path:  # these never end
            assert (head.status, head.headers["Content-Type"]) == (200, "text/event-stream"), path
            continue
        get = client.ask("GET", tcp.concrete(path))
        assert head.status == get.status, path
        assert set(head.headers) == set(get.headers), path
        assert head.headers["Content-Type"] == get.headers["Content-Type"], path
        assert int(get.headers["Content-Length"]) == len(get.body), path
    refused = client.ask("HEAD", "/login?code=0")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET"), "a look spends no code"
    client.close()


# --- browsers -------------------------------------------------------------------------------------


def test_a_login_link_is_good_once(berth):
    answer = tcp.listen(berth)
    client, cookie, _ = login(berth, answer)
    path = "/" + answer["url"].split("/", 3)[3]
    assert client.ask("GET", path).status == 403
    assert client.ask("GET", path, headers={"Cookie": cookie}).status == 303, "in the same browser"


def test_the_link_is_in_no_words_of_a_command(berth, tmp_path):
    seen = tmp_path / "seen"
    program = tmp_path / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\n')
    program.chmod(0o755)
    desk = {"PATH": f"{program.parent}:{os.environ['PATH']}", "DISPLAY": ":0"}
    url = berth.cli("ui", env=desk, check=0).stdout.strip()
    words = seen.read_text()
    assert "code=" not in words and "http" not in words
    [page] = [pathlib.Path(line) for line in words.splitlines()]
    assert page.parent == berth.dir and stat.S_IMODE(berth.dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert f'content="0; url={url}"' in page.read_text()
    # An older one, whatever it is, gives way.
    page.chmod(0o644)
    later = berth.cli("ui", env=desk, check=0).stdout.strip()
    assert later in page.read_text() and stat.S_IMODE(page.stat().st_mode) == 0o600
    berth.stop()
    berth.start()
    assert not page.exists(), "its link is worth nothing any more"


def test_a_read_only_link_lets_somebody_look(berth):
    url = berth.cli("ui", "--print", "--read-only").stdout.strip()
    port = int(url.split(":")[2].split("/")[0])
    client, cookie, csrf = login(berth, {"url": url, "port": port})
    known = {"Cookie": cookie, "X-Berth-CSRF": csrf}
    assert client.ask("GET", "/api/session", headers=known).json()["scope"] == "read"
    assert client.ask("GET", "/api/jobs", headers=known).status == 200
    refused = client.ask("POST", "/api/jobs/kill", {"ids": "1"}, known)
    assert refused.status == 403 and b"may only look" in refused.body
    # A full link makes more of it; one for looking takes nothing from a full one.
    full = "/" + tcp.listen(berth)["url"].split("/", 3)[3]
    answer = client.ask("GET", full, headers={"Cookie": cookie})
    better = answer.headers["Set-Cookie"].split(";")[0]
    assert client.ask("GET", "/api/session", headers={"Cookie": better}).json()["scope"] == "full"
    assert client.ask("GET", "/api/jobs", headers={"Cookie": cookie}).status == 401
    look = "/" + berth.cli("ui", "--print", "--read-only").stdout.strip().split("/", 3)[3]
    assert "Set-Cookie" not in client.ask("GET", look, headers={"Cookie": better}).headers


def test_whoever_may_only_look_can_leave(berth):
    url = berth.cli("ui", "--print", "--read-only").stdout.strip()
    port = int(url.split(":")[2].split("/")[0])
    client, cookie, csrf = login(berth, {"url": url, "port": port})
    known = {"Cookie": cookie, "X-Berth-CSRF": csrf}
    assert client.ask("POST", "/api/logout", headers=known).status == 200
    assert client.ask("GET", "/api/jobs", headers=known).status == 401


def test_a_link_is_used_up_by_a_browser_that_is_known_already(berth):
    client, cookie, _ = login(berth)
    path = "/" + tcp.listen(berth)["url"].split("/", 3)[3]
    assert client.ask("GET", path, headers={"Cookie": cookie}).status == 303
    again = client.ask("GET", path)
    assert again.status == 403 and "Set-Cookie" not in again.headers


def test_who_guesses_links_locks_nobody_out(berth):
    answer = tcp.listen(berth)
    client = tcp.Client(answer["port"])
    for guess in range(100):
        assert client.ask("GET", f"/login?code={guess:064x}").status == 403
    login(berth, answer)


def test_the_cookie_is_for_this_site_and_no_script(berth):
    answer = tcp.listen(berth)
    client = tcp.Client(answer["port"])
    entered = client.ask("GET", "/" + answer["url"].split("/", 3)[3])
    assert entered.headers["Location"] == "/ui/"
    attributes = {part.strip() for part in entered.headers["Set-Cookie"].split(";")[1:]}
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= attributes


def test_a_browser_changes_things_only_with_the_word_of_our_pages(berth):
    client, cookie, csrf = login(berth)
    pause = {"instance": True}
    with_cookie = {"Cookie": cookie}
    assert client.ask("POST", "/api/jobs/pause", pause, with_cookie).status == 403
    wrong = {**with_cookie, "X-Berth-CSRF": "0" * 64}
    assert client.ask("POST", "/api/jobs/pause", pause, wrong).status == 403
    right = {**with_cookie, "X-Berth-CSRF": csrf, "Origin": f"http://127.0.0.1:{client.port}"}
    assert client.ask("POST", "/api/jobs/pause", pause, right).status == 200
    assert client.ask("POST", "/api/jobs/resume", pause, right).status == 200


def test_logging_out_ends_the_session(berth):
    client, cookie, csrf = login(berth)
    headers = {"Cookie": cookie, "X-Berth-CSRF": csrf}
    out = client.ask("POST", "/api/logout", headers=headers)
    assert out.status == 200 and "Max-Age=0" in out.headers["Set-Cookie"]
    assert out.headers["Connection"] == "close", "and so does the connection"
    assert client.ask("GET", "/api/status", headers=headers).status == 401


def test_every_answer_carries_the_headers_that_protect(berth):
    port = tcp.listen(berth)["port"]
    client = tcp.Client(port)
    for path in ("/", "/ui/gpu", "/api/status", "/login"):
        headers = client.ask("GET", path).headers
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["X-Frame-Options"] == "DENY", path
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], path
        script = re.search(r"script-src ([^;]*)", headers["Content-Security-Policy"])
        assert script is None or script[1] == "'self'", path
        assert "Access-Control-Allow-Origin" not in headers, path
    assert client.ask("GET", "/").headers["Location"] == "/ui/gpu"


def test_who_is_asking_is_told(berth):
    local = berth.api("GET", "/api/session")
    assert (local["via"], local["id"]) == ("socket", None)
    port = tcp.listen(berth)["port"]
    read = tcp.Client(port, token=tcp.make_token(berth, "read")).ask("GET", "/api/session").json()
    assert (read["via"], read["scope"], read["csrf"]) == ("token", "read", None)
    assert read["id"] in [token["id"] for token in berth.api("GET", "/api/tokens")["tokens"]]


# --- tokens ---------------------------------------------------------------------------------------


def test_tokens_come_and_go(berth, tmp_path):
    port = tcp.listen(berth)["port"]
    made = berth.cli("token", "add", "laptop", "--read-only", check=0)
    secret = made.stdout.strip()
    assert "may only look" in made.stderr
    client = tcp.Client(port, token=secret)
    assert client.ask("GET", "/api/status").status == 200
    assert client.ask("POST", "/api/stop").status == 403
    listed = berth.cli("token", "ls", check=0).stdout
    assert "laptop" in listed and secret not in listed
    [token] = json.loads(berth.cli("token", "ls", "--json", check=0).stdout)["tokens"]
    assert token["scope"] == "read" and token["last_used"]
    berth.cli("token", "rm", token["id"], check=0)
    assert client.ask("GET", "/api/status").status == 401
    assert "no token" in berth.cli("token", "rm", token["id"], check=1).stderr


def test_only_the_hash_of_a_token_is_on_disk(berth):
    secret = tcp.make_token(berth)
    file = berth.dir / "access.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert secret not in text and secret.removeprefix("berth_") not in text
    assert json.loads(text)["keys"][0]["hash"]


def test_a_token_expires(berth):
    port = tcp.listen(berth)["port"]
    client = tcp.Client(port, token=tcp.make_token(berth, lifetime_ms=1))
    eventually(lambda: client.ask("GET", "/api/status").status == 401, "it has expired")


def test_what_hangs_on_a_token_ends_with_it(berth):
    port = tcp.listen(berth)["port"]
    secret = tcp.make_token(berth, lifetime_ms=1500)
    with socket.create_connection(("127.0.0.1", port), berthlib.PATIENCE) as stream:
        stream.sendall(f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                       f"Authorization: Bearer {secret}\r\n\r\n".encode())
        got = b""
        while piece := stream.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 200"), got[:200]
    assert tcp.Client(port, token=secret).ask("GET", "/api/status").status == 401


def test_revoking_a_token_cuts_what_hangs_on_it(berth):
    port = tcp.listen(berth)["port"]
    secret = tcp.make_token(berth)
    with socket.create_connection(("127.0.0.1", port), berthlib.PATIENCE) as waiting:
        waiting.sendall(
            f"GET /api/events?after=1000000&wait_ms=60000 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {secret}\r\n\r\n".encode())
        token = eventually(
            lambda: [t for t in berth.api("GET", "/api/tokens")["tokens"] if t["last_used"]],
            "the request has arrived")[0]
        berth.api("DELETE", f"/api/tokens/{token['id']}")
        assert waiting.recv(1) == b"", "the connection has been closed"


def test_revoking_a_token_cuts_connections_that_rest(berth):
    port = tcp.listen(berth)["port"]
    made = berth.api("POST", "/api/tokens", {"name": "mine"})
    with socket.create_connection(("127.0.0.1", port), berthlib.PATIENCE) as resting:
        resting.sendall(f"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        f"Authorization: Bearer {made['secret']}\r\n\r\n".encode())
        assert resting.recv(65536).startswith(b"HTTP/1.1 200")
        assert tcp.Client(port, token=tcp.make_token(berth)).ask("GET", "/api/session").status == 200
        berth.api("DELETE", f"/api/tokens/{made['token']['id']}")
        assert resting.recv(1) == b"", "the connection has been closed"


def test_tokens_that_make_no_sense_are_refused(berth):
    for body in ({}, {"name": ""}, {"name": "a", "scope": "root"}, {"name": "a", "lifetime_ms": -1}):
        with pytest.raises(berthlib.ApiError) as refused:
            berth.api("POST", "/api/tokens", body)
        assert refused.value.status == 400, body


# --- answers --------------------------------------------------------------------------------------


def test_what_the_client_has_is_not_sent_again(berth):
    berth.wait(berth.submit([berthlib.job("true", name=f"j{i}") for i in range(40)]))
    client = tcp.Client(tcp.listen(berth)["port"], token=tcp.make_token(berth))
    first = client.ask("GET", "/api/jobs")
    again = client.ask("GET", "/api/jobs", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    berth.wait(berth.submit(berthlib.job("true", name="news")))
    news = client.ask("GET", "/api/jobs", headers={"If-None-Match": first.headers["ETag"]})
    assert news.status == 200


def test_larger_answers_are_compressed(berth):
    berth.wait(berth.submit([berthlib.job("true", name=f"j{i}") for i in range(40)]))
    client = tcp.Client(tcp.listen(berth)["port"], token=tcp.make_token(berth))
    plain = client.ask("GET", "/api/jobs")
    packed = client.ask("GET", "/api/jobs", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 4
    assert gzip.decompress(packed.body) == plain.body
    assert "Content-Encoding" not in client.ask(
        "GET", "/api/session", headers={"Accept-Encoding": "gzip"}).headers


# --- TLS ------------------------------------------------------------------------------------------


KINDS = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], "rsa": ["rsa:2048"]}


def make_certificate(cert, key, kind="ec"):
    """Of localhost, signed by itself; the key first, as the common tools for renewing do."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", *KINDS[kind],
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True)
    key.chmod(0o600)


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key) of localhost, signed by itself."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(cert, key)
    return cert, key


def test_with_a_certificate_everything_is_encrypted(berth, tmp_path, certificate):
    cert, key = certificate
    (berth.dir / "berth.yaml").write_text(
        f"listen:\n  address: 0.0.0.0\n  certificate: {cert}\n  key: {key}\n")
    listen = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
    assert listen["tls"] and listen["url"].startswith("https://")
    file = token_file(tmp_path, tcp.make_token(berth))
    client = tcp.Client(listen["port"], host="localhost", token=file.read_text().strip(),
                        context=tcp.trusting(cert))
    assert client.ask("GET", "/api/status").status == 200
    assert client.ask("GET", "/api/status", headers={"Host": "evil.example"}).status == 421

    server = ["--server", f"https://localhost:{listen['port']}", "--token-file", file]
    elsewhere = {"BERTH_DIR": str(tmp_path / "elsewhere")}
    added = berth.cli(*server, "--ca-file", cert, "add", "echo", "over TLS", env=elsewhere, check=0)
    assert berth.wait_one(int(added.stdout))["state"] == "succeeded"
    strangers = berth.cli(*server, "ls", env=elsewhere, check=1)
    assert "cannot trust localhost" in strangers.stderr
    assert tcp.raw_status(listen["port"], b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") == 0


def test_a_key_that_everybody_may_read_is_not_used(berth, certificate):
    cert, key = certificate
    key.chmod(0o644)
    (berth.dir / "berth.yaml").write_text(f"listen:\n  certificate: {cert}\n  key: {key}\n")
    problem = eventually(lambda: berth.api("GET", "/api/listen")["problem"], "it says why not")
    assert "chmod" in problem
    assert listening_sockets(berth.pid) == 0


def test_a_renewed_certificate_is_used_without_a_restart(berth, tmp_path, certificate):
    cert, key = certificate
    (berth.dir / "berth.yaml").write_text(f"listen:\n  certificate: {cert}\n  key: {key}\n")
    listen = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
    token = tcp.make_token(berth)

    def answers(trusted):
        client = tcp.Client(listen["port"], host="localhost", token=token, context=tcp.trusting(trusted))
        try:
            return client.ask("GET", "/api/status").status == 200
        except ssl.SSLCertVerificationError:
            return False
        finally:
            client.close()

    first = tmp_path / "first.pem"
    first.write_bytes(cert.read_bytes())
    assert answers(first)
    under_way = tcp.Client(listen["port"], host="localhost", token=token, context=tcp.trusting(first))
    assert under_way.ask("GET", "/api/status").status == 200

    # A pair that does not belong together changes nothing, and is told.
    new_cert, new_key = tmp_path / "new.pem", tmp_path / "new-key.pem"
    make_certificate(new_cert, new_key)
    new_key.rename(key)
    problem = eventually(lambda: berth.api("GET", "/api/listen")["problem"], "it says what is wrong")
    assert "the one before stays in use" in problem and str(key) in problem
    assert berth.api("GET", "/api/listen")["listening"]
    assert problem in berth.status()["problems"]
    assert any(problem in reason.values() for reason in berth.api("GET", "/health")["reasons"])
    assert problem in berth.cli("status", check=0).stdout
    assert answers(first)

    second = tmp_path / "second.pem"
    second.write_bytes(new_cert.read_bytes())
    new_cert.rename(cert)
    eventually(lambda: answers(second), "the renewed one is shown")
    assert not answers(first)
    eventually(lambda: berth.api("GET", "/api/listen")["problem"] is None, "all is well again")
    assert problem not in berth.status()["problems"]
    # Whoever was connected stays so.
    assert under_way.ask("GET", "/api/status").status == 200

    cert.write_text("nonsense")
    eventually(lambda: berth.api("GET", "/api/listen")["problem"], "it says what is wrong")
    assert answers(second)


@pytest.mark.parametrize("kind, other", [("rsa", "ec"), ("ec", "rsa")])
def test_a_key_of_another_kind_belongs_to_no_certificate(berth, tmp_path, kind, other):
    cert, key, new_cert, new_key = (tmp_path / name for name in ("c.pem", "k.pem", "nc.pem", "nk.pem"))
    make_certificate(cert, key, kind)
    make_certificate(new_cert, new_key, other)
    said = f"listen:\n  certificate: {cert}\n  key: "
    (berth.dir / "berth.yaml").write_text(f"{said}{new_key}\n")
    problem = eventually(lambda: berth.api("GET", "/api/listen")["problem"], "it says why not")
    assert str(new_key) in problem and str(cert) in problem
    assert not berth.api("GET", "/api/listen")["listening"]

    (berth.dir / "berth.yaml").write_text(f"{said}{key}\n")
    listen = eventually(lambda: (v := berth.api("GET", "/api/listen"))["listening"] and v, "it listens")
    first = tmp_path / "first.pem"
    first.write_bytes(cert.read_bytes())
    new_cert.rename(cert)
    problem = eventually(lambda: berth.api("GET", "/api/listen")["problem"], "it says what is wrong")
    assert "the one before stays in use" in problem and str(key) in problem
    assert berth.api("GET", "/health")["status"] == "degraded"
    client = tcp.Client(listen["port"], host="localhost", token=tcp.make_token(berth),
                        context=tcp.trusting(first))
    assert client.ask("GET", "/api/status").status == 200


# --- what a token that only looks gets to see ------------------------------------------------------


def test_a_token_that_only_looks_gets_no_values_of_variables(berth):
    port = tcp.listen(berth)["port"]
    [job] = berth.submit(berthlib.job("true", env=["API_KEY=sesame", "EMPTY="]),
                         environment=["PATH=/usr/bin:/bin", "PASSWORD=xyzzy=1"])
    berth.wait_one(job)
    full = tcp.Client(port, token=tcp.make_token(berth)).ask("GET", f"/api/jobs/{job}").json()
    assert "PASSWORD=xyzzy=1" in full["environment"] and "API_KEY=sesame" in full["env"]
    assert berth.show(job)["env"] == full["env"]

    looks = tcp.Client(port, token=tcp.make_token(berth, "read"))
    seen = looks.ask("GET", f"/api/jobs/{job}").json()
    assert seen["env"] == ["API_KEY", "EMPTY"]
    assert set(seen["environment"]) == {v.partition("=")[0] for v in full["environment"]}
    # Whatever else may be read holds neither these nor what lets somebody in.
    secret = tcp.make_token(berth)
    for method, path, scope in tcp.routes(berth):
        if scope == "read" and method == "GET" and not path.endswith("/stream"):
            path = path.replace("/jobs/{id}", f"/jobs/{job}")
            body = looks.ask(method, tcp.concrete(path) + ("?ids=1" if path == "/api/wait" else "")).body
            for word in (b"sesame", b"xyzzy", secret.encode(), b"login?code="):
                assert word not in body, (path, word)
    for method, path in (("GET", "/api/tokens"), ("POST", "/api/tokens"), ("POST", "/api/ui")):
        assert looks.ask(method, path, body={} if method == "POST" else None).status == 403


# --- berth --server -------------------------------------------------------------------------------


def test_a_server_that_cannot_be_used_is_told_plainly(berth, tmp_path):
    file = token_file(tmp_path, "berth_0")
    port = tcp.listen(berth)["port"]
    url = f"http://127.0.0.1:{port}"
    assert "not known" in berth.cli("--server", url, "--token-file", file, "ls", check=1).stderr
    assert "--token-file" in berth.cli("--server", url, "ls", check=2).stderr
    plain = berth.cli("--server", f"https://127.0.0.1:{port}", "--token-file", file, "ls", check=1)
    assert f"does not speak TLS on port {port}" in plain.stderr and "http://" in plain.stderr
    file.chmod(0o644)
    assert "chmod 600" in berth.cli("--server", url, "--token-file", file, "ls", check=2).stderr
    file.chmod(0o600)
    berth.cli("ui", "--stop", check=0)
    gone = berth.cli("--server", url, "--token-file", file, "ls", check=1)
    assert "nobody answers" in gone.stderr
