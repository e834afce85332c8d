"""A page that is served from a thread, as long as a test needs it."""

import contextlib
import queue
import threading

from tornado.ioloop import IOLoop

from vqelites.explore.server import LOOPBACK, make_server


@contextlib.contextmanager
def served(sources, token=None):
    """The URL of a page on these sources."""
    told = queue.Queue()

    def work():
        loop = IOLoop()
        server, url = make_server(sources, LOOPBACK, 0, token)
        server.start()
        told.put((url, loop))
        loop.start()
        server.stop()
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    url, loop = told.get(timeout=60)
    try:
        yield url
    finally:
        loop.add_callback(loop.stop)
        thread.join()
