"""Every route against every attack: nothing leaks, nothing changes, and the answer is in words."""

import http.client
import json
import socket
from urllib.parse import quote

import pytest

from strobe.web.questions import QUESTIONS
from tests.web.served import HOSTILE, SECRET, write_run

GETS = [
    "/", "/index.html", "/assets/index.js", "/api/health", "/api/runs", "/api/rules",
    "/api/rules/host-gap", "/api/compare?a=plain&b=plain",
    *(f"/api/runs/plain/{question.name}".rstrip("/") for question in QUESTIONS),
    "/api/runs/plain/table/steps", "/api/runs/plain/table/steps?format=csv",
]  # fmt: skip
POSTS = {
    "/api/runs/plain/rename": {"name": "renamed"},
    "/api/runs/plain/tags": {"tags": ["seen"]},
    "/api/runs/plain/delete": {"confirm": "plain"},
}
# Whoever asks like this is refused before anything is looked at: (headers, status).
STRANGERS = {
    "no token": ({"Authorization": None}, 401),
    "a wrong token": ({"Authorization": "Bearer " + "x" * 43}, 401),
    "an empty token": ({"Authorization": "Bearer "}, 401),
    "a token as user and password": ({"Authorization": "Basic eDp5"}, 401),
    "a cookie of another server": ({"Authorization": None, "Cookie": "strobe-1=abc"}, 401),
    "a foreign host": ({"Host": "evil.example"}, 421),
    "a host that begins like ours": ({"Host": "localhost.evil.example"}, 421),
    "a host with a name and a password": ({"Host": "localhost@evil.example"}, 421),
    "an address of the machine that was not asked for": ({"Host": "192.0.2.7"}, 421),
    "no host": ({"Host": ""}, 421),
    "a foreign origin": ({"Origin": "http://evil.example"}, 403),
    "an origin of no name": ({"Origin": "null"}, 403),
    "an origin on another port": ({"Origin": "http://127.0.0.1:1"}, 403),
    "an origin of another scheme": ({"Origin": "https://127.0.0.1"}, 403),
    "another site, says the browser": ({"Sec-Fetch-Site": "cross-site"}, 403),
    "another port of this machine, says the browser": ({"Sec-Fetch-Site": "same-site"}, 403),
}


def leaks(answered) -> bool:
    return SECRET.encode() in answered.body or b"root:" in answered.body


@pytest.mark.parametrize("attack", STRANGERS)
@pytest.mark.parametrize("route", [*GETS, *POSTS])
def test_strangers_are_refused_on_every_route(client, base, route, attack):
    headers, status = STRANGERS[attack]
    if route in POSTS:
        answered = client.post(route, POSTS[route], **headers)
    else:
        answered = client.ask(route, headers=headers)
    assert answered.status == status
    assert not leaks(answered) and str(base) not in answered.body.decode()
    assert "content-security-policy" in answered.headers
    assert "set-cookie" not in answered.headers
    assert (base / "plain" / "run.json").exists() and not (base / "plain" / "tags.json").exists()


# Names of runs that must not lead anywhere: as they stand in the address.
NAMES = [
    "..", "../outside", "..%2Foutside", "%2e%2e%2foutside", "..%2f..%2fetc", "....//outside",
    "plain%2F..%2F..%2Foutside", "plain/../../outside", "%2Fetc", "%2Fetc%2Fpasswd", "/etc",
    "link-to-run", "link-to-folder", "link-to-folder%2Foutside", "link-inside", "no-run",
    "plain%00", "%00", "plain%00.json", "plain%2Frank_0", "plain%2Frank_0%2Fraw", ".", "%2e",
    "plain%2F.", "plain%2F%2F", "%2Fplain", "C%3A%5Cplain", "..%5Coutside", "%ff%fe", "%",
    "~", "~root", "plain%0d%0aX-Leak:%201", "A" * 300, "x%2F" * 30 + "x", quote("ｐｌａｉｎ"),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leads_out_of_the_base_directory(client, base, name):
    routes = ["", "/table/events", "/summary", "/live", "/advice", "/table/steps?format=csv"]
    for route in routes:
        answered = client.ask(f"/api/runs/{name}{route}")
        assert answered.status in (400, 404), (route, answered)
        assert not leaks(answered) and "x-leak" not in answered.headers
    for route, body in POSTS.items():
        change = route.rsplit("/", 1)[1]
        answered = client.post(f"/api/runs/{name}/{change}", body)
        assert answered.status in (400, 404) and not leaks(answered)
    answered = client.ask(f"/api/compare?a=plain&b={name}")
    assert answered.status in (400, 404) and not leaks(answered)
    assert (base.parent / "outside" / "secret.txt").read_text() == SECRET


FILES = [
    "/../server.py", "/..%2fserver.py", "/assets/../../server.py", "/%2e%2e/%2e%2e/guard.py",
    "/assets/..%5c..%5cserver.py", "//etc/passwd", "/%2fetc%2fpasswd", "/assets/%00",
    "/static/index.html", "/index.html%00.js", "/assets/", "/.git/config",
]  # fmt: skip


@pytest.mark.parametrize("address", FILES)
def test_no_address_leads_out_of_the_pages(client, address):
    answered = client.ask(address)
    assert answered.status in (400, 404) and b"import" not in answered.body and not leaks(answered)


@pytest.mark.parametrize(
    "name",
    ["../outside", "a/b", "/tmp/x", "..", ".", "", ".hidden", "a\0b", "a\nb", "a\\b", " a", "-rf",
     "x" * 300, None, 7, ["a"]],
    ids=repr,
)  # fmt: skip
def test_a_run_is_not_renamed_to_what_is_no_name(client, base, name):
    answered = client.post("/api/runs/plain/rename", {"name": name})
    assert answered.status == 400 and "name of a run" in answered.json["error"]
    assert (base / "plain").is_dir()


def test_a_run_does_not_take_the_place_of_another(client, base):
    answered = client.post("/api/runs/plain/rename", {"name": "two-ranks"})
    assert answered.status == 400 and "already exists" in answered.json["error"]


def test_a_live_run_is_neither_renamed_nor_deleted(client, base):
    for change, body in (("rename", {"name": "dead"}), ("delete", {"confirm": "live"})):
        answered = client.post(f"/api/runs/live/{change}", body)
        assert answered.status == 400 and "still being recorded" in answered.json["error"]
    assert (base / "live" / "run.json").exists()


@pytest.mark.parametrize("route", POSTS)
@pytest.mark.parametrize(
    "headers",
    [{"X-Strobe": None}, {"X-Strobe": "0"}, {"Origin": None}, {"Origin": "null"}],
    ids=str,
)
def test_a_change_needs_what_another_site_cannot_send(client, base, route, headers):
    answered = client.post(route, POSTS[route], **headers)
    assert answered.status == 403 and (base / "plain").is_dir()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("route", [*GETS, *POSTS])
def test_other_methods_are_refused(client, route, method):
    assert client.ask(route, method).status == 405


def test_changes_are_not_made_by_opening_a_link(client, base):
    for route in POSTS:
        assert client.ask(route).status == 404
    assert (base / "plain").is_dir()


def test_too_much_is_refused(client):
    assert client.ask("/api/runs/plain/table/steps?q=" + "x" * 17_000).status == 414
    assert client.post("/api/runs/plain/tags", {"tags": ["x" * 70_000]}).status == 413
    assert client.post("/api/runs/plain/tags", {"tags": ["x"] * 1000}).status == 400
    assert client.post("/api/runs/plain/tags", "no object").status == 400


def test_a_body_longer_than_it_said_is_cut_off(client):
    """In pieces, so that its length is nowhere told."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection:
        head = (
            f"POST /api/runs/plain/tags HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
            f"Authorization: Bearer {client.instance.token}\r\nX-Strobe: 1\r\n"
            f"Origin: http://127.0.0.1:{client.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head.encode())
        answered = b""
        try:
            for _ in range(200):
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            answered = connection.recv(65536)
        except OSError:
            pass  # closed half-way: just as well
        assert b" 200 " not in answered


@pytest.mark.parametrize(
    "headers", [["Host: a", "Host: b"], ["X: " + "y" * 100_000]], ids=["two hosts", "long"]
)
def test_a_head_that_is_not_in_order_is_refused(client, headers):
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection:
        text = "\r\n".join(["GET /api/health HTTP/1.1", *headers, "", ""])
        answered = b""
        try:
            connection.sendall(text.encode())
            answered = connection.recv(65536)
        except OSError:
            pass
    assert answered == b"" or answered.split(b" ")[1][:1] == b"4"


def test_the_first_link_gives_a_cookie_and_loses_its_token(client):
    token = client.instance.token
    welcomed = client.ask(f"/?token={token}&lang=zh", headers={"Authorization": None})
    assert welcomed.status == 303 and welcomed.headers["location"] == "./?lang=zh"
    cookie = welcomed.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and token not in cookie
    only_cookie = {"Authorization": None, "Cookie": cookie.split(";")[0]}
    assert client.ask("/api/health", headers=only_cookie).status == 200
    other = client.ask("/api/health", headers={**only_cookie, "Host": "evil.example"})
    assert other.status == 421
    wrong = client.ask("/?token=wrong", headers={"Authorization": None})
    assert wrong.status == 401 and "set-cookie" not in wrong.headers


def test_the_token_opens_only_the_first_page(client):
    address = f"/api/health?token={client.instance.token}"
    assert client.ask(address, headers={"Authorization": None}).status == 401


def test_a_link_from_elsewhere_may_open_the_page_but_not_ask(client):
    navigation = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.ask("/", headers={**navigation, "Authorization": None}).status == 401
    assert client.ask("/api/runs", headers=navigation).status == 403


def test_who_lacks_the_token_is_told_where_it_is(client):
    page = client.ask("/", headers={"Authorization": None}).body.decode()
    assert "strobe status" in page and "<script" not in page


def test_a_tunnel_may_end_on_another_port(client):
    for host in ("localhost:9000", "127.0.0.1", "[::1]:8080", "LOCALHOST:9000"):
        assert client.ask("/api/health", headers={"Host": host}).status == 200


def test_every_answer_carries_the_policy(client):
    for route in ("/api/runs", "/api/nothing", "/", "/nothing"):
        headers = client.ask(route).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "unsafe-eval" not in policy and "frame-ancestors 'none'" in policy
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


def test_hostile_names_of_runs_are_only_names(client):
    listed = client.ask("/api/runs")
    assert HOSTILE in [run["name"] for run in listed.json["runs"]]
    assert listed.headers["content-type"] == "application/json"
    answered = client.get(f"/api/runs/{quote(HOSTILE, safe='')}/table/steps")
    assert answered.json["total"] == 4
    saved = client.get(f"/api/runs/{quote(HOSTILE, safe='')}/table/steps?format=csv")
    assert saved.headers["content-disposition"].count('"') == 2
    assert "<" not in saved.headers["content-disposition"]


def test_two_requests_in_one_are_two(client):
    """A head smuggled into the body of another is not a request of its own."""
    inner = f"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n"
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    connection.putrequest("GET", "/api/health")
    connection.putheader("Content-Length", "5")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders(b"0\r\n\r\n" + inner.encode())
    try:
        assert connection.getresponse().status in (400, 401)
    except http.client.HTTPException:
        pass
    finally:
        connection.close()


@pytest.mark.slow
def test_a_token_of_the_environment(own_folders, tmp_path, monkeypatch):
    from strobe.errors import UsageError
    from strobe.web import instances, starting
    from tests.web.served import Client

    write_run(tmp_path / "base" / "run", steps=3)
    for bad in ("short", "with spaces in it, and long", "ünïcödé-and-long-enough"):
        monkeypatch.setenv("STROBE_TOKEN", bad)
        with pytest.raises(UsageError, match="too short, or contains"):
            starting.start(tmp_path / "base", "127.0.0.1", starting.free_port("127.0.0.1"))
    monkeypatch.setenv("STROBE_TOKEN", "a-token-of-my-own")
    instance = starting.start(tmp_path / "base", "127.0.0.1", starting.free_port("127.0.0.1"))
    try:
        assert instance.link.endswith("?token=a-token-of-my-own")
        assert Client(instance).ask("/api/health").json["ok"]
    finally:
        instances.end(instance)
    assert json.dumps(instance.token) not in (instances.log_file(instance.port).read_text())
