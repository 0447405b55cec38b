"""What the API tells beyond single jobs: streams, logs, history, files, previews, numbers."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
import urllib.parse

import jsonschema
import pytest
import yaml

from berthlib import (
    BIN,
    GIB,
    PATIENCE,
    REPO,
    ApiError,
    Gone,
    UnixConnection,
    alive,
    eventually,
    job,
    kill_process,
    pids,
    process_stat,
    read_bytes,
    unique_key,
)

SPEC = yaml.safe_load((REPO / "docs" / "openapi.yaml").read_text())


def raw(berth, method, path, headers=None, body=None):
    """Status, headers and bytes of an answer."""
    connection = UnixConnection(berth.dir / "sock", PATIENCE)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def check(path, answer, method="get", status="200"):
    """The answer is what docs/openapi.yaml says of this path."""
    schema = SPEC["paths"][path][method]["responses"][status]
    schema = schema["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": SPEC["components"]})
    return answer


def get(berth, path, template=None):
    return check(template or path.split("?")[0], berth.api("GET", path))


def test_jobs_come_in_the_order_asked_for(berth):
    berth.api("POST", "/api/rules", {"set": [{"key": "queue.one.limit", "value": "1"}], "unset": []})
    ids = berth.submit([job("true", name=f"p{n}", queue="one", priority=n % 3) for n in range(7)])
    berth.wait(ids)
    berth.api("POST", "/api/jobs/pause", {"instance": True})
    ids += berth.submit([job("true", name="waits", priority=9)])

    def listed(query):
        found, after = [], ""
        while True:
            page = get(berth, f"/api/jobs?limit=3&{query}{after}")
            found += page["jobs"]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"

    def expected(key, reverse):
        known = sorted((j for j in berth.jobs() if j[key] is not None),
                       key=lambda j: (j[key], j["id"]), reverse=reverse)
        none = sorted((j for j in berth.jobs() if j[key] is None),
                      key=lambda j: j["id"], reverse=reverse)
        return [j["id"] for j in known + none]

    for sort, key in (("id", "id"), ("submitted", "id"), ("priority", "priority"),
                      ("started", "started_at"), ("ended", "ended_at")):
        assert [j["id"] for j in listed(f"sort={sort}")] == expected(key, False), sort
        assert [j["id"] for j in listed(f"sort=-{sort}")] == expected(key, True), sort
    states = [j["state"] for j in listed("sort=state")]
    assert states == ["queued"] + ["succeeded"] * 7
    assert [j["state"] for j in listed("sort=-state")] == states[::-1]
    assert [j["id"] for j in listed("sort=-ended&queue=one&state=succeeded")] == expected("ended_at", True)[:7]
    table = berth.cli("ls", "--all", "--sort=-priority", "--json", check=0).stdout
    assert [j["id"] for j in json.loads(table)] == expected("priority", True)
    few = berth.cli("ls", "--all", "--sort=-ended", "--limit", "2", "--json", check=0).stdout
    assert [j["id"] for j in json.loads(few)] == expected("ended_at", True)[:2]
    usual = berth.cli("ls", "--sort", "priority", "--json", check=0).stdout
    assert [j["id"] for j in json.loads(usual)] == expected("priority", False)
    with pytest.raises(ApiError, match="sort"):
        berth.api("GET", "/api/jobs?sort=name")
    assert "--sort" in berth.cli("ls", "--sort", "name", check=2).stderr


class Stream:
    """Server-Sent Events, read in the background."""

    def __init__(self, berth, path, headers=None):
        self.events = []
        self.comments = 0
        self.over = False
        self.connection = UnixConnection(berth.dir / "sock", PATIENCE)
        self.connection.request("GET", path, headers=headers or {})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.getheader("Content-Type").startswith("text/event-stream")
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        event = {}
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    key, _, value = line.partition(": ")
                    event[key] = value
                elif event:
                    event["data"] = json.loads(event["data"])
                    self.events.append(event)
                    event = {}
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # closed under it
        self.over = True

    def of(self, kind):
        return [e for e in self.events if e["event"] == kind]

    def close(self):
        # Wakes the reader, which would keep close() waiting until the next line.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.connection.close()


@pytest.fixture
def stream():
    opened = []

    def open_one(berth, path, headers=None):
        opened.append(Stream(berth, path, headers))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


# --- lists ----------------------------------------------------------------------------------------


def test_lists_are_as_they_are_described(gpu_berth):
    berth = gpu_berth
    ids = berth.submit(
        [job("true", name=f"Run-{i}", queue="car") for i in range(3)],
        batch={"name": "sweep", "traits": {"dialect": "commands", "mode": "single"}},
        queues=[{"name": "car", "limit": 1}],
    )
    berth.wait(ids)
    berth.submit([job("true", name="other"), job("true")])
    berth.wait_all()

    page = get(berth, "/api/batches?limit=1")
    [sweep] = page["batches"]
    assert sweep["name"] == "sweep" and sweep["counts"]["succeeded"] == 3
    assert sweep["traits"] == {"dialect": "commands", "mode": "single"}
    assert get(berth, f"/api/batches?after={page['next']}")["batches"][0]["id"] == sweep["id"] + 1
    assert get(berth, "/api/batches?order=desc")["batches"][-1] == sweep
    assert get(berth, f"/api/batches/{sweep['id']}", "/api/batches/{id}") == sweep
    with pytest.raises(ApiError) as none:
        berth.api("GET", "/api/batches/999")
    assert none.value.status == 404

    queues = {q["name"]: q for q in get(berth, "/api/queues")["queues"]}
    assert queues["car"]["limit"] == 1 and queues["car"]["waiting"] == 0
    assert queues["car"]["counts"] == sweep["counts"]

    spans = get(berth, "/api/timeline")["attempts"]
    assert [s["job"] for s in spans] == [5, 4, 3, 2, 1]
    assert spans[-1]["name"] == "Run-0" and spans[-1]["state"] == "succeeded"
    assert get(berth, "/api/timeline?to=1000")["attempts"] == []
    assert get(berth, "/api/timeline?limit=2")["more"] is True

    for path, template in [
        ("/api/jobs", None), ("/api/status", None), ("/api/gpus", None), ("/api/why", None),
        ("/api/rules", None), ("/api/events", None), ("/api/backup", None),
        (f"/api/jobs/{ids[0]}", "/api/jobs/{id}"), (f"/api/jobs/{ids[0]}/why", "/api/jobs/{id}/why"),
        (f"/api/jobs/{ids[0]}/usage", "/api/jobs/{id}/usage"), ("/health", None),
        (f"/api/wait?ids={ids[0]}", None),
    ]:
        get(berth, path, template)

    # What is removed is no longer counted, and a restart changes nothing.
    berth.api("POST", "/api/jobs/remove", {"ids": str(ids[0])})
    berth.restart()
    queues = {q["name"]: q for q in get(berth, "/api/queues")["queues"]}
    assert queues["car"]["counts"]["succeeded"] == 2 and sum(queues["car"]["counts"].values()) == 2


def test_waiting_jobs_are_counted_by_queue(berth):
    berth.submit([job("sleep 600", queue="car") for _ in range(4)],
                 queues=[{"name": "car", "limit": 1}])
    eventually(
        lambda: next(q for q in get(berth, "/api/queues")["queues"] if q["name"] == "car")
        | {"rules": {}} == {"name": "car", "limit": 1, "running": 1, "paused": False,
                            "waiting": 3, "rules": {},
                            "counts": {"queued": 3, "running": 1, "paused": 0, "succeeded": 0,
                                       "failed": 0, "killed": 0, "cancelled": 0}},
        "one runs and three wait",
    )


def test_jobs_are_found_by_name_and_shown_in_part(berth):
    berth.submit([job("true", name=n) for n in ("lr-0.1", "LR-0.2", "wd-0.1", "[x]")])
    found = get(berth, "/api/jobs?q=lr&fields=id,name")
    assert found["jobs"] == [{"id": 1, "name": "lr-0.1"}, {"id": 2, "name": "LR-0.2"}]
    assert [j["id"] for j in get(berth, "/api/jobs?name=*-0.1&sort=-id")["jobs"]] == [3, 1]
    assert [j["id"] for j in get(berth, "/api/jobs?q=" + urllib.parse.quote("[x"))["jobs"]] == [4]
    for wrong in ("fields=mood", "sort=mood", "q=a&name=b", "limit=0"):
        with pytest.raises(ApiError) as refused:
            berth.api("GET", f"/api/jobs?{wrong}")
        assert refused.value.status == 400


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_tells_what_happens_and_goes_on_where_it_was(gpu_berth, stream):
    berth = gpu_berth
    first = stream(berth, "/api/stream")
    eventually(lambda: first.of("gpus") and first.of("status"), "it begins with what there is")
    assert [g["index"] for g in first.of("gpus")[0]["data"]] == [0, 1]
    jsonschema.validate(first.of("status")[0]["data"],
                        {"$ref": "#/components/schemas/LiveStatus", "components": SPEC["components"]})
    time.sleep(0.2)  # let it join; otherwise it may begin behind the first events
    one = berth.submit_one("true")
    berth.wait_one(one)
    eventually(lambda: any(e["data"]["kind"] == "succeeded" for e in first.of("event")), "the end")
    eventually(lambda: first.of("status")[-1]["data"]["counts"]["succeeded"] == 1, "it is counted")
    seen = first.of("event")
    first.close()

    two = berth.submit_one("true")
    berth.wait_one(two)
    everything = berth.api("GET", "/api/events")["events"]
    again = stream(berth, "/api/stream?topics=events", {"Last-Event-ID": seen[0]["id"]})
    expected = [e for e in everything if e["seq"] > int(seen[0]["id"])]
    eventually(lambda: len(again.events) >= len(expected), "it has caught up")
    assert [e["data"] for e in again.events] == expected
    assert [int(e["id"]) for e in again.events] == [e["seq"] for e in expected]
    whole = stream(berth, "/api/stream?topics=events&after=0")
    eventually(lambda: len(whole.events) >= len(everything), "all of it")
    assert [e["data"]["seq"] for e in whole.events] == [e["seq"] for e in everything]


def test_two_watchers_stay_in_step(berth, stream):
    watchers = [stream(berth, "/api/stream?topics=events&after=0") for _ in range(20)]
    berth.wait(berth.submit([job("true") for _ in range(30)]))
    everything = [e["seq"] for e in berth.api("GET", "/api/events")["events"]]
    for watcher in watchers:
        eventually(lambda: len(watcher.events) >= len(everything), "it has heard everything")
        assert [e["data"]["seq"] for e in watcher.events] == everything


def test_many_may_come_at_once(berth):
    berth.wait(berth.submit([job("true") for _ in range(30)]))
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(300)]
        for one in sockets:
            one.connect(str(berth.dir / "sock"))
            one.settimeout(PATIENCE)
        for one in sockets:
            one.sendall(b"GET /api/stream?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for one in sockets:
            assert opened.enter_context(one.makefile("rb")).readline() == b"HTTP/1.1 200 OK\r\n"


def test_streams_end_with_the_daemon(berth, stream):
    watcher = stream(berth, "/api/stream")
    follower = stream(berth, f"/api/jobs/{berth.submit_one('sleep 600')}/log/stream")
    assert berth.stop() == 0
    eventually(lambda: watcher.over and follower.over, "they have ended")


# --- queries ---


def test_a_parameter_that_nobody_knows_is_refused_everywhere(berth, tmp_path):
    (berth.dir / "berth.yaml").write_text(f"command_dir: {tmp_path}\n")
    code, text = berth.run_daemon(args=["--routes"])
    assert code == 0, text
    for method, path, _ in map(str.split, text.splitlines()):
        concrete = path.replace("{mode}", "single")
        concrete = re.sub(r"\{\w+\}", "1", concrete)
        for parameter in ("no_such=1", "no_such", "code&no_such"):
            status, _, answer = raw(berth, method, f"{concrete}?{parameter}", body="" if method == "GET" else "{}")
            assert status == 400, (method, concrete, answer)
            assert json.loads(answer)["error"]["code"] == "invalid"
            assert b"no_such" in answer or b"code" in answer, (method, concrete, answer)
    assert berth.running()


# --- logs -----------------------------------------------------------------------------------------


def test_a_log_is_read_whole_in_parts_and_only_when_it_has_changed(berth):
    one = berth.submit_one("printf 0123456789")
    berth.wait_one(one)
    path = f"/api/jobs/{one}/log"
    status, headers, text = raw(berth, "GET", path)
    assert (status, text) == (200, b"0123456789")
    assert headers["Content-Type"].startswith("text/plain")
    tag = headers["ETag"]
    assert raw(berth, "GET", path, {"If-None-Match": tag})[0] == 304
    status, headers, text = raw(berth, "GET", path, {"Range": "bytes=3-5"})
    assert (status, text, headers["Content-Range"]) == (206, b"345", "bytes 3-5/10")
    assert raw(berth, "GET", path, {"Range": "bytes=-4"})[2] == b"6789"
    assert raw(berth, "GET", path, {"Range": "bytes=3-5", "If-Range": '"old"'})[0] == 200
    status, headers, _ = raw(berth, "GET", path + "?lines=1", {"Range": "bytes=0-2"})
    assert status == 200 and "Accept-Ranges" not in headers, "the last lines are another text each time"
    status, headers, _ = raw(berth, "GET", path, {"Range": "bytes=10-"})
    assert (status, headers["Content-Range"]) == (416, "bytes */10")
    headers = raw(berth, "GET", path + "?download=1")[1]
    assert headers["Content-Disposition"] == f'attachment; filename="job-{one}.1.log"'
    assert raw(berth, "GET", path + "?attempt=2")[0] == 404
    assert raw(berth, "GET", "/api/jobs/99/log")[0] == 404


def test_a_long_log_comes_in_pieces(berth):
    one = berth.submit_one("head -c 5000000 /dev/zero | tr '\\0' x")
    berth.wait_one(one)
    status, _, text = raw(berth, "GET", f"/api/jobs/{one}/log")
    assert status == 200 and text == b"x" * 5000000
    status, headers, text = raw(berth, "GET", f"/api/jobs/{one}/log", {"Range": "bytes=1000000-4000000"})
    assert status == 206 and len(text) == 3000001


@pytest.mark.parametrize("size", [10, 5000, 2_000_000])
def test_who_has_a_log_is_told_so_whatever_its_size(berth, size):
    one = berth.submit_one(f"head -c {size} /dev/zero | tr '\\0' x")
    berth.wait_one(one)
    path = f"/api/jobs/{one}/log"
    tag = raw(berth, "GET", path)[1]["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', f'"other",W/{tag} , "more"', "*"):
        for part in ({}, {"Range": "bytes=2-4"}):
            status, headers, text = raw(berth, "GET", path, {"If-None-Match": known, **part})
            assert (status, headers["ETag"], text) == (304, tag, b""), (known, part)
            assert "Content-Length" not in headers
    assert raw(berth, "GET", path, {"If-None-Match": '"other", W/"more"'})[0] == 200


def test_parts_of_a_compressed_log_and_of_the_log_are_not_mixed(berth):
    one = berth.submit_one("seq 1000")
    berth.wait_one(one)
    path = f"/api/jobs/{one}/log"
    packed = raw(berth, "GET", path, {"Accept-Encoding": "gzip"})[1]
    plain = raw(berth, "GET", path)[1]
    assert packed["Content-Encoding"] == "gzip" and packed["ETag"] != plain["ETag"]
    assert "Accept-Ranges" not in packed and plain["Accept-Ranges"] == "bytes"
    resumed = {"Range": "bytes=100-", "Accept-Encoding": "gzip"}
    status, headers, _ = raw(berth, "GET", path, {**resumed, "If-Range": packed["ETag"]})
    assert (status, headers["Content-Encoding"]) == (200, "gzip"), "from the beginning"
    status, headers, _ = raw(berth, "GET", path, {**resumed, "If-Range": plain["ETag"]})
    assert (status, headers["ETag"]) == (206, plain["ETag"]) and "Content-Encoding" not in headers
    assert raw(berth, "GET", path, {"Accept-Encoding": "gzip", "If-None-Match": packed["ETag"]})[0] == 304


def test_a_log_that_is_no_longer_the_jobs_is_not_read(berth, tmp_path):
    log = tmp_path / "out.log"
    one = berth.submit_one("echo mine", log=str(log))
    berth.wait_one(one)
    assert raw(berth, "GET", f"/api/jobs/{one}/log")[2] == b"mine\n"
    secret = tmp_path / "secret"
    secret.write_text("secret")
    log.unlink()
    log.symlink_to(secret)
    status, _, text = raw(berth, "GET", f"/api/jobs/{one}/log")
    assert status == 403 and b"secret" not in text
    log.unlink()
    os.mkfifo(log)
    assert raw(berth, "GET", f"/api/jobs/{one}/log")[0] == 400
    log.unlink()
    assert raw(berth, "GET", f"/api/jobs/{one}/log")[0] == 404


def test_a_log_is_followed_through_attempts_to_the_end(berth, stream, tmp_path):
    gate = tmp_path / "gate"
    script = f"echo begin; while [ ! -e {gate} ]; do sleep 0.05; done; echo end; [ -e {gate}2 ] || " \
             f"{{ touch {gate}2; exit 3; }}"
    one = berth.submit_one(script, retries=1)
    follower = stream(berth, f"/api/jobs/{one}/log/stream")
    eventually(lambda: follower.of("log"), "the first line has come")
    assert follower.of("log")[0]["data"] == {"attempt": 1, "offset": 6, "text": "begin\n"}
    assert follower.of("log")[0]["id"] == "1:6"
    gate.touch()
    berth.wait_one(one)
    eventually(lambda: follower.over, "it has ended")
    told = "".join(e["data"]["text"] for e in follower.of("log") if e["data"]["attempt"] == 1)
    assert told == "begin\nend\n"
    assert follower.of("attempt")[0]["data"] == {"attempt": 2}
    told = "".join(e["data"]["text"] for e in follower.of("log") if e["data"]["attempt"] == 2)
    assert told == "begin\nend\n"
    assert follower.events[-1]["event"] == "end"
    assert follower.events[-1]["data"] == {"state": "succeeded"}

    again = stream(berth, f"/api/jobs/{one}/log/stream?attempt=1&offset=6")
    eventually(lambda: again.over, "it has ended")
    assert "".join(e["data"]["text"] for e in again.of("log")) == "end\n"
    back = stream(berth, f"/api/jobs/{one}/log/stream", {"Last-Event-ID": "1:6"})
    eventually(lambda: back.over, "it has ended")
    assert [(e["data"]["attempt"], e["data"]["text"]) for e in back.of("log")][0] == (1, "end\n")


# --- cards ----------------------------------------------------------------------------------------


def test_what_cards_did_and_attempts_used_is_kept(gpu_berth):
    berth = gpu_berth
    one = berth.submit_one(
        f"exec {BIN}/berth-simgpu train --memory 3GiB --time 600s", gpus=1, gpu_memory=4 * GIB)
    berth.wait_state(one, "running")

    def used():
        points = get(berth, f"/api/jobs/{one}/usage", "/api/jobs/{id}/usage")["points"]
        return len(points) >= 2 and points[-1]["memory"] >= 3 * GIB and points

    eventually(used, "its memory is seen")
    usage = get(berth, f"/api/jobs/{one}/usage", "/api/jobs/{id}/usage")
    assert usage["claim"] == 4 * GIB and usage["attempt"] == 1
    card = get(berth, "/api/gpus")["gpus"][berth.show(one)["job"]["gpu_indices"][0]]
    history = get(berth, f"/api/gpus/history?gpu={card['uuid']}")
    assert history["points"][-1]["memory_used"] >= 3 * GIB
    assert get(berth, f"/api/gpus/history?gpu={card['index']}")["gpu"] == card["uuid"]
    assert get(berth, f"/api/gpus/history?gpu={card['uuid']}&points=1")["points"]
    for wrong, status in (("gpu=GPU-none", 404), ("gpu=", 400), ("gpu=0&from=5&to=4", 400)):
        with pytest.raises(ApiError) as refused:
            berth.api("GET", f"/api/gpus/history?{wrong}")
        assert refused.value.status == status
    size = (berth.dir / "gpus.ring").stat().st_size
    berth.restart()
    assert len(get(berth, f"/api/gpus/history?gpu={card['uuid']}")["points"]) >= len(history["points"])
    assert (berth.dir / "gpus.ring").stat().st_size == size < 16 * 1024 * 1024


# --- files ----------------------------------------------------------------------------------------

NATIVE = "version: 1\njobs:\n  - name: a-{lr}\n    matrix: {lr: [1, 2]}\n    run: echo {lr}\n    gpus: 0\n"


def test_a_file_is_checked_and_submitted_as_berth_run_would(berth, tmp_path):
    body = {"text": NATIVE, "name": "jobs.yaml", "cwd": str(tmp_path)}
    checked = check("/api/check", berth.api("POST", "/api/check", body), "post")
    assert checked["total"] == 2 and not checked["problems"]
    assert [j["command"] for j in checked["jobs"]] == ["echo 1", "echo 2"]
    body["key"] = unique_key()
    answer = check("/api/jobfiles", berth.api("POST", "/api/jobfiles", body), "post")
    assert answer["ids"] == [1, 2]
    assert berth.api("POST", "/api/jobfiles", body) == answer, "the same key, the same jobs"
    done = berth.wait([1, 2])
    assert [done[i]["state"] for i in (1, 2)] == ["succeeded", "succeeded"]
    assert done[1]["cwd"] == str(tmp_path) and done[2]["params"] == {"lr": "2"}

    body = {"text": "version: 1\njobs:\n  - nmae: x\n", "name": "jobs.yaml", "cwd": str(tmp_path)}
    checked = check("/api/check", berth.api("POST", "/api/check", body), "post")
    assert checked["problems"][0]["line"] == 3 and checked["problems"][0]["severity"] == "error"
    with pytest.raises(ApiError) as refused:
        berth.api("POST", "/api/jobfiles", body)
    assert refused.value.status == 422
    check("/api/jobfiles", refused.value.body, "post", "422")
    for wrong in ({"text": "x"}, {"text": "x", "cwd": "rel"}, {"cwd": "/"}, {**body, "what": 1}):
        with pytest.raises(ApiError) as refused:
            berth.api("POST", "/api/check", wrong)
        assert refused.value.status == 400


def test_results_are_those_of_the_command(berth):
    jobs = [job(f"echo 'accuracy: 0.{lr}{seed}'", params={"lr": str(lr), "seed": str(seed)})
            for lr in (1, 2) for seed in (3, 5)]
    berth.wait(berth.submit(jobs))
    mine = get(berth, "/api/results?best=max:accuracy")
    theirs = json.loads(berth.cli("results", "--json", "--best", "max:accuracy", check=0).stdout)
    assert {**mine, "warnings": None} == {**theirs, "warnings": None} and mine["warnings"] == []
    assert mine["groups"][1]["metrics"]["accuracy"]["mean"] == pytest.approx(0.24)
    assert get(berth, "/api/results?ids=1-2&by=seed")["by"] == ["seed"]
    for wrong in ("batch=1&ids=2", "take=most", "batch=99", "best=max:nothing"):
        with pytest.raises(ApiError) as refused:
            berth.api("GET", f"/api/results?{wrong}")
        assert refused.value.status in (400, 404)


# --- rules ----------------------------------------------------------------------------------------


def test_a_preview_says_what_saving_does(berth):
    berth.api("POST", "/api/rules", {"set": [{"key": "max_concurrent", "value": "1"}]})
    ids = berth.submit([job("sleep 600") for _ in range(4)])
    berth.wait_state(ids[0], "running")
    change = {"set": [{"key": "max_concurrent", "value": "3"}]}
    preview = check("/api/rules/preview", berth.api("POST", "/api/rules/preview", change), "post")
    assert preview["starts"] == ids[1:3] and preview["problems"] == []
    assert [j["state"] for j in berth.jobs()] == ["running", "queued", "queued", "queued"]
    refused = {"set": [{"key": "max_concurrent", "value": "many"}]}
    assert berth.api("POST", "/api/rules/preview", refused)["problems"]

    berth.api("POST", "/api/rules", change)
    for started in preview["starts"]:
        berth.wait_state(started, "running")
    assert berth.show(ids[3])["job"]["state"] == "queued"
    changes = get(berth, "/api/rules/history")["changes"]
    assert [c["detail"] for c in changes] == [
        "rules for this run: max_concurrent=3 (was 1)",
        "rules for this run: max_concurrent=1 (was 0)",
    ]
    after = changes[0]["seq"]
    assert get(berth, f"/api/rules/history?after={after}")["changes"] == changes[1:]


def test_a_preview_tells_of_which_cards_something_else_is_said(gpu_berth):
    berth = gpu_berth
    first, *others = berth.submit([job("sleep 600", gpus=1, gpu_memory=20 * GIB) for _ in range(9)])
    berth.wait_state(first, "running")
    waiting = others[-1]
    change = {"set": [{"key": "maximize_resource_utilization", "value": "false"}]}
    preview = check("/api/rules/preview", berth.api("POST", "/api/rules/preview", change), "post")
    [wait] = [w for w in preview["waits"] if w["id"] <= waiting and w["why_before"]["kind"] == "gpu"]
    assert wait["why_before"] == wait["why_after"]
    assert {card["kind"] for card in wait["gpus_before"]} == {"memory"}
    assert {card["kind"] for card in wait["gpus_after"]} == {"claimed"}


MANY = 30_000


def previewing(berth):
    """The process that works out a preview, if there is one; these instances have no probe."""
    for pid in pids():
        stat = read_bytes(f"/proc/{pid}/stat")
        fields = stat[stat.rfind(b")") + 2 :].split()
        if len(fields) > 19 and int(fields[1]) == berth.pid and fields[0] not in (b"Z", b"X"):
            if b"(berthd)" in stat:
                return pid
    return None


def many_wait(berth):
    """One runs, as many wait as take a moment to look at; their ids."""
    one = {"set": [{"key": "max_concurrent", "value": "1"}], "save": True}
    berth.api("POST", "/api/rules", one)
    ids = berth.submit([job("sleep 600") for _ in range(MANY)])
    berth.wait_started(ids[0])
    return ids


def open_files(pid):
    try:
        return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:  # it comes and goes
        return []


def catch_a_preview(berth):
    """Asks for previews until one is caught at work, and stops it there.

    Its pid, the list that its answer will be in, and the thread that waits for that."""

    def ask(answers):
        try:
            change = {"set": [{"key": "order", "value": "random"}]}
            answers.append(berth.api("POST", "/api/rules/preview", change))
        except (ApiError, Gone) as error:
            answers.append(error)

    for _ in range(50):
        answers = []
        asking = threading.Thread(target=ask, args=[answers])
        asking.start()
        while asking.is_alive():
            pid = previewing(berth)
            # Before anything else it closes what it has inherited, but for the pipe.
            if pid and len(open_files(pid)) == 1 and kill_process(pid, number=signal.SIGSTOP):
                eventually(lambda: not alive(pid) or process_stat(pid)[0] == "T", "it stands")
                if alive(pid):
                    return pid, answers, asking
        asking.join()
    raise AssertionError("no preview was caught")


def test_a_preview_looks_at_any_number_of_jobs(berth):
    ids = many_wait(berth)
    change = {"set": [{"key": "max_concurrent", "value": "4"}]}
    preview = berth.api("POST", "/api/rules/preview", change)
    assert preview["starts"] == ids[1:4] and preview["problems"] == []
    waits = {w["id"]: w for w in preview["waits"]}
    assert ids[4] in waits and "4" in waits[ids[4]]["after"]
    assert waits[ids[4]]["why_after"]["kind"] == "max_concurrent" and not preview["more"]
    assert berth.status()["counts"]["running"] == 1, "nothing was done"

    berth.api("POST", "/api/rules", change)
    for started in preview["starts"]:
        berth.wait_state(started, "running")
    counts = berth.status()["counts"]
    assert (counts["running"], counts["queued"]) == (4, MANY - 4)
    assert waits[ids[4]]["after"] in berth.why(ids[4])
    assert not previewing(berth)


def test_others_are_answered_while_a_preview_is_made(berth):
    ids = many_wait(berth)
    pid, answers, asking = catch_a_preview(berth)
    # None of the daemon's files: a lock among them would stand for a running attempt.
    [only] = open_files(pid)
    assert only.startswith("pipe:")
    assert berth.show(ids[0])["job"]["state"] == "running"
    berth.kill_jobs([ids[0]], grace_ms=0)
    berth.wait_started(ids[1])
    # Somebody who asks and does not wait for the answer.
    gone = UnixConnection(berth.dir / "sock", PATIENCE)
    gone.request("POST", "/api/rules/preview", '{"set": [{"key": "gpu_left", "value": "1"}]}')
    gone.close()
    kill_process(pid)
    asking.join()
    [died] = answers
    assert died.status == 503 and "SIGKILL" in died.body["error"]["message"]
    change = {"set": [{"key": "max_concurrent", "value": "2"}]}
    assert berth.api("POST", "/api/rules/preview", change)["starts"]


def test_a_daemon_that_is_killed_takes_its_preview_along(berth):
    ids = many_wait(berth)
    attempt, shim = berth.wait_started(ids[0])
    pid, answers, asking = catch_a_preview(berth)
    berth.kill9()
    asking.join()
    assert isinstance(answers[0], Gone)
    eventually(lambda: not alive(pid), "the preview has gone with its daemon")
    berth.start()
    detail = eventually(
        lambda: (d := berth.show(ids[0]))["job"]["state"] == "running" and d, "it was adopted"
    )
    assert [a["id"] for a in detail["attempts"]] == [attempt] and alive(shim)
    assert berth.status()["counts"]["queued"] == MANY - 1
    change = {"set": [{"key": "max_concurrent", "value": "2"}]}
    assert berth.api("POST", "/api/rules/preview", change)["starts"] == [ids[1]]


# --- the instance ---------------------------------------------------------------------------------


def test_numbers_and_health(gpu_berth):
    berth = gpu_berth
    berth.wait_one(berth.submit_one("exit 3"))
    get(berth, "/api/gpus")
    status, headers, text = raw(berth, "GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = text.decode().splitlines()
    assert 'berth_jobs{state="failed"} 1' in lines
    assert 'berth_jobs_finished_total{state="failed",class="exit"} 1' in lines
    assert any(line.startswith('berth_gpu_memory_total_bytes{gpu="1"') for line in lines)
    values = {name: float(value) for name, _, value in
              (line.rpartition(" ") for line in lines if not line.startswith("#"))}
    assert values["berth_commit_seconds_count"] >= 1
    assert values["berth_decision_seconds_count"] >= 1
    time.sleep(3)  # in which nobody needs to know how the cards are
    later = raw(berth, "GET", "/metrics")[2].decode()
    assert float(re.search(r"^berth_probe_age_seconds (\S+)$", later, re.M)[1]) < 3
    assert 'berth_gpu_usable{gpu="0"' in later
    assert get(berth, "/health") == {"status": "ok", "reasons": []}
    (berth.dir / "berth.yaml").write_text("nonsense: 3\n")
    sick = eventually(lambda: (h := get(berth, "/health"))["reasons"] and h, "it is told")
    assert sick["status"] == "degraded" and sick["reasons"][0]["what"] == "settings"


def test_numbers_come_while_the_driver_hangs(gpu_berth):
    berth = gpu_berth
    get(berth, "/api/gpus")
    berth.simgpu("set", "driver", "hang_ms", 3600000)
    for _ in range(2):  # the first look hangs, and then there is none to wait for
        began = time.monotonic()
        text = raw(berth, "GET", "/metrics")[2].decode()
        assert time.monotonic() - began < 5, "who collects numbers waits for 10 s at most"
        assert float(re.search(r"^berth_probe_age_seconds (\S+)$", text, re.M)[1]) > 0
    failed = eventually(lambda: (t := raw(berth, "GET", "/metrics")[2].decode())
                        and "\nberth_probe_failed 1\n" in t and t, "it is given up", every=0.5)
    assert float(re.search(r"^berth_probe_age_seconds (\S+)$", failed, re.M)[1]) > 5
    assert [r["what"] for r in get(berth, "/health")["reasons"]] == ["probe"], "no card is gone"


def test_who_waits_is_told_what_for_and_what_is_not_there(berth):
    done, waits = berth.submit_one("true"), berth.submit_one("true", gpus=1)
    berth.wait_one(done)
    answer = check("/api/wait", berth.api("GET", f"/api/wait?ids={done},{waits},99999&timeout_ms=0"))
    assert not answer["done"] and answer["unknown"] == [99999]
    [listed] = [j for j in berth.api("GET", "/api/jobs")["jobs"] if j["id"] == waits]
    [told] = [j for j in answer["jobs"] if j["id"] == waits]
    assert told["reason"] and (told["reason"], told["why"]) == (listed["reason"], listed["why"])
    answer = berth.api("GET", "/api/wait?ids=99998-99999&timeout_ms=0")
    assert (answer["done"], answer["jobs"], answer["unknown"]) == (True, [], [99998, 99999])
    for ids in ("99999", "99998-99999", f"{done},99999"):
        assert "no job" in berth.cli("wait", ids, check=1).stderr


@pytest.mark.parametrize("path, said", [
    ("/api/jobs?state=queued&state=running", "state: comes twice"),
    ("/api/jobs?state=foo", "there are queued, running"),
    ("/api/jobs?fields=foo", "there are id, name"),
    ("/api/jobs?foo=1", "there are state, queue"),
    ("/api/jobs?after=1&sort=priority", "after"),
    ("/api/events?kind=finsihed", "there are submitted"),
    ("/api/nope", "/api/docs"),
    ("/api/log/content", "mode is missing"),
])
def test_what_is_refused_says_what_there_is(berth, path, said):
    with pytest.raises(ApiError) as refused:
        berth.api("GET", path)
    assert refused.value.status == (404 if "nope" in path else 400)
    assert said in refused.value.body["error"]["message"]


def test_jobs_are_forgotten_only_when_it_is_said_which(berth):
    ids = berth.submit([job("true"), job("true")])
    berth.wait(ids)
    for body in ({}, {"ids": ""}, {"dry_run": False}, {"states": []}):
        with pytest.raises(ApiError) as refused:
            berth.api("POST", "/api/jobs/remove", body)
        assert refused.value.status == 400, body
    assert len(berth.jobs()) == 2
    answer = berth.api("POST", "/api/jobs/remove", {"all": True})
    assert answer["removed"] == ids and berth.jobs() == []
    berth.wait(berth.submit([job("true")]))
    assert "removed" in berth.cli("clean", check=0).stdout and berth.jobs() == []


def examples(operation):
    """(schema, example) of everything that an operation takes and answers with."""
    for holder in [operation.get("requestBody", {}), *operation["responses"].values()]:
        for media in holder.get("content", {}).values():
            if "example" in media:
                yield media["schema"], media["example"]


def test_schemas_are_schemas_and_examples_fit_them():
    for name, schema in SPEC["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "example" not in schema, name
    seen = 0
    for item in SPEC["paths"].values():
        for operation in item.values():
            for schema, example in examples(operation):
                jsonschema.validate(example, {**schema, "components": SPEC["components"]})
                seen += 1
    assert seen >= 15


def test_the_daemon_takes_what_the_description_shows(berth, tmp_path):
    """Every body that is an example, sent as it is."""
    berth.api("POST", "/api/jobs/pause", {"instance": True})
    (berth.dir / "berth.yaml").write_text(f"command_dir: {tmp_path / 'command'}\n")
    listed = lambda: berth.api("GET", "/api/commands/single/list")["configs"][0]["file_path"]  # noqa: E731
    eventually(lambda: listed().startswith(str(tmp_path / 'command')), "the directory counts")
    log = tmp_path / "a.log"
    log.write_text("")
    sent = set()
    for path, item in SPEC["paths"].items():
        for method, operation in item.items():
            media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "example" not in media:
                continue
            body = media["example"]
            if "log_path" in body:  # nothing lies there on this machine
                body = {**body, "log_path": str(log)}
            answer = berth.api(method.upper(), path.replace("{mode}", "single"), body)
            if "content" in operation["responses"]["200"]:
                check(path, answer, method)
            sent.add(operation["operationId"])
    assert {"submit", "kill", "remove", "setRules", "previewRules", "addToken", "writeConfig", "bindLog",
            "unbindLog", "check"} <= sent
    started = berth.api("POST", "/api/scheduler/single/start?config_index=0")
    shown = SPEC["paths"]["/api/scheduler/{mode}/start"]["post"]["responses"]["200"]
    assert set(shown["content"]["application/json"]["example"]) == set(started)
    assert berth.api("POST", "/api/scheduler/single/stop?config_index=0")["batch"] == started["batch"]


def test_the_description_is_served(berth):
    served = berth.api("GET", "/api/openapi.json")
    # But for the cookie, which every instance has its own of.
    cookie = served["components"]["securitySchemes"]["cookie"]
    assert re.fullmatch("berth_session_[0-9a-f]{8}", cookie["name"])
    cookie["name"] = "berth_session_INSTANCE"
    assert served == SPEC
    status, headers, page = raw(berth, "GET", "/api/docs")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert b"<script" not in page and b"/api/stream" in page
    assert "script" not in headers["Content-Security-Policy"]
