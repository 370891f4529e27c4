"""A real HTTP server for a folder of pages, on the loopback interface only."""

from __future__ import annotations

import socketserver
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

LOOPBACK = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without the name server that the base class asks for the machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]


class _Handler(SimpleHTTPRequestHandler):
    """Files under the folder and nothing else: no listing, no symbolic link that leads out, no hidden file."""

    def send_head(self) -> Any:
        """The file asked for, or a 404."""
        wanted = Path(self.translate_path(self.path))
        inside = wanted.resolve().is_relative_to(Path(self.directory).resolve())
        hidden = any(part.startswith(".") for part in wanted.relative_to(self.directory).parts)
        if not inside or hidden:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> None:
        """A folder without an index page is no page."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def copyfile(self, source: Any, outputfile: IO[bytes]) -> None:  # type: ignore[override]
        """A reader that had enough closes the connection; that is its right."""
        try:
            super().copyfile(source, outputfile)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def serve_folder(folder: Path) -> int:
    """Serves a folder for as long as the process lives; returns the port."""
    server = _Server((LOOPBACK, 0), partial(_Handler, directory=str(folder.resolve())))
    threading.Thread(target=server.serve_forever, name="web-site", daemon=True).start()
    return server.server_port
