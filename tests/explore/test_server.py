"""Who may open the page."""

import asyncio
import socket
import urllib.error
import urllib.request

import pytest
from folders import write_run
from serving import served
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from vqelites.explore.server import serve
from vqelites.runs.explored import ExploredRun

TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return ExploredRun(write_run(tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture(scope="module")
def guarded(source):
    with served([source], TOKEN) as url:
        yield url


def opened(url, **headers):
    """Status and text of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_page_is_served_on_this_machine_alone(source):
    with served([source]) as url:
        assert url.startswith("http://localhost:")
        port = int(url.rstrip("/").rpartition(":")[2])
        assert opened(url)[0] == 200
        own = socket.gethostbyname(socket.gethostname())  # the address of this machine in a network, if it has any
        if not own.startswith("127."):
            with pytest.raises(OSError, match="refused"), socket.create_connection((own, port), timeout=5):
                pass


def talking(page, origin=None):
    """Open the connection over which page and browser talk."""
    request = HTTPRequest(page.replace("http", "ws") + "ws", headers={"Origin": origin or page.rstrip("/")})

    async def talk():
        connection = await websocket_connect(request, subprotocols=["bokeh", "none"])
        connection.close()
        while await connection.read_message() is not None:
            pass

    asyncio.run(talk())


def test_a_page_of_another_origin_may_not_talk_to_it(source):
    with served([source]) as url:
        with pytest.raises(HTTPClientError, match="403"):
            talking(url, origin="http://evil.example")
        talking(url)


def test_with_a_token_nobody_else_gets_in(guarded):
    page = guarded.partition("?")[0]
    assert guarded == f"{page}?token={TOKEN}"
    for url in (page, f"{page}?token=wrong", f"{page}?token="):
        status, text = opened(url)
        assert status == 403
        assert "needs its token" in text
        assert "ball" not in text
    assert opened(guarded)[0] == 200


def test_with_a_token_nobody_else_may_talk_to_it(guarded):
    with pytest.raises(HTTPClientError, match="403"):
        talking(guarded.partition("?")[0])


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "static/../../config.json", "%2e%2e/%2e%2e/etc/passwd", "config.json"]
)
def test_no_path_leads_to_a_file(source, path):
    with served([source]) as url:
        assert opened(url + path)[0] in (400, 403, 404)


@pytest.mark.parametrize("wrong", [{"port": 70000}, {"port": -1}, {"address": "everywhere"}, {"address": "999.1.1.1"}])
def test_a_port_or_an_address_that_cannot_be_is_a_sentence(source, wrong):
    """A port above 65535 was a traceback."""
    with pytest.raises(ValueError, match=r"^(A port is a number|The address must be one of this).*but got"):
        serve([source], ready=print, **wrong)


def test_a_port_that_is_taken_is_a_sentence(source):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="Nothing can be served"):
            serve([source], port=taken.getsockname()[1], ready=print)
