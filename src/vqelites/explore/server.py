"""Serving the page: on this machine alone or, if asked to, on a network for those who have the token."""

import hmac
import html
import ipaddress
import logging
import queue
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
from bokeh.server.auth_provider import AuthProvider
from panel.io.server import Server, get_server
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClosedError

from vqelites.explore.page import live
from vqelites.explore.source import Source

LOOPBACK = "127.0.0.1"
_COOKIE = "vqelites-token"


class TokenAuth(AuthProvider):
    """Lets in who opens the page with its token; a cookie remembers that for the page's own requests."""

    def __init__(self, token: str):
        self.token = token
        super().__init__()

    @property
    def get_user(self) -> Callable[[Any], Any]:
        """Who asks, if they know the token."""

        def user(handler: RequestHandler) -> str | None:
            given = handler.get_argument("token", "")
            if given and hmac.compare_digest(given.encode(), self.token.encode()):
                handler.set_secure_cookie(_COOKIE, self.token, httponly=True, samesite="Strict")
                return "known"
            kept = handler.get_secure_cookie(_COOKIE) or b""
            return "known" if hmac.compare_digest(kept, self.token.encode()) else None

        return user

    @property
    def login_url(self) -> str:
        """Where those without the token are sent."""
        return "/token"

    @property
    def login_handler(self) -> type[RequestHandler]:
        """The page that says so."""
        return _NeedsToken


class _NeedsToken(RequestHandler):
    def get(self) -> None:
        """Say what is missing."""
        self.set_status(403)
        self.write(html.escape("This page needs its token: open the address that `vqelites explore` printed."))


def serve(sources: Sequence[Source], *, address: str = LOOPBACK, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted; `ready` is called with its URL."""
    token = None if _is_loopback(address) else secrets.token_urlsafe(16)
    server, url = make_server(sources, address, port, token)
    ready(url)
    server.start()
    server.io_loop.start()


def serve_beside(sources: Sequence[Source]) -> str:
    """Serve the page on this machine from a thread of its own, as long as the process lives; returns its URL."""
    told: queue.Queue[str | Exception] = queue.Queue()

    def work() -> None:
        try:
            IOLoop()  # of this thread
            serve(sources, ready=told.put)
        except Exception as error:
            told.put(error)

    threading.Thread(target=work, name="explorer", daemon=True).start()
    answer = told.get()
    if isinstance(answer, Exception):
        raise answer
    return answer


def make_server(sources: Sequence[Source], address: str, port: int, token: str | None) -> tuple[Server, str]:
    """A server that is not started yet, and the URL to open, with the token if there is one."""
    logging.getLogger("bokeh").setLevel(logging.ERROR)
    logging.getLogger("asyncio").addFilter(_worth_telling)
    pn.extension()
    port = _port(address, port)
    host = "localhost" if _is_loopback(address) else socket.gethostname() if _is_any(address) else address
    options: dict[str, Any] = {}
    if token is not None:
        options = {"auth_provider": TokenAuth(token), "cookie_secret": secrets.token_hex(32)}
    server = get_server(
        {"/": lambda: live(sources)},
        port=port,
        address=address,
        websocket_origin=[f"{name}:{port}" for name in {host, address, "localhost"}],
        title="vqelites",
        **options,
    )
    return server, f"http://{host}:{port}/{f'?token={token}' if token else ''}"


def _worth_telling(record: logging.LogRecord) -> bool:
    """False for messages about a browser that was closed while data were sent."""
    return not (record.exc_info and isinstance(record.exc_info[1], WebSocketClosedError))


def _is_loopback(address: str) -> bool:
    return address == "localhost" or _ip(address).is_loopback


def _is_any(address: str) -> bool:
    return _ip(address).is_unspecified


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        raise ValueError(
            f"The address must be one of this machine, such as 127.0.0.1 or 0.0.0.0 (all), but got {address!r}."
        ) from None


def _port(address: str, port: int) -> int:
    """The port, if it is free; 0: any that is."""
    if not 0 <= port <= 65535:
        raise ValueError(f"A port is a number from 0 (any that is free) to 65535, but got {port}.")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ValueError(f"Nothing can be served on {address}, port {port}: {error.strerror}.") from error
        return probe.getsockname()[1]
