"""The `conduit-dnstap-tracer` command: a small dnstap collector that prints each frame at once.

A development aid, not a production collector (chapter 50 section 6). One thread serves all
connections.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import signal
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final, TextIO

import yaml

from conduit import __version__
from conduit.config.address import parse_socket_address
from conduit.observe.events.describe import Plain, describe_frame, frame_line, question_names
from conduit.observe.events.dnstap_decode import DnstapError, Frame, decode_frame
from conduit.observe.events.frame_streams import FrameStreamError, ServerStream

_RECEIVE: Final = 65536

Writer = Callable[[dict[str, Plain]], str]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="conduit-dnstap-tracer",
        description="Listen as a dnstap collector and print each frame.",
    )
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("-u", dest="path", metavar="PATH", help="listen on a Unix socket")
    place.add_argument("-a", dest="address", metavar="IP:PORT", help="listen on TCP")
    parser.add_argument(
        "-f", dest="format", choices=("log", "json", "yaml"), default="log", help="default: log"
    )
    parser.add_argument(
        "--unidirectional", action="store_true", help="also accept clients that begin with START"
    )
    parser.add_argument(
        "--qname", metavar="SUFFIX", help="only frames whose name is SUFFIX or below it"
    )
    parser.add_argument("--type", choices=("query", "response"), help="only frames of this kind")
    parser.add_argument(
        "--version", action="version", version=f"conduit-dnstap-tracer {__version__}"
    )
    return parser


def frame_filter(qname: str | None, kind: str | None) -> Callable[[Frame], bool]:
    """Return what decides whether a frame is printed; names compare by whole labels."""
    suffix = None if qname is None else qname.lower().strip(".") + "."

    def wanted(frame: Frame) -> bool:
        if kind is not None and frame.message.is_response != (kind == "response"):
            return False
        if suffix is None or suffix == ".":
            return True
        names = question_names(frame)
        return any(name == suffix or name.endswith("." + suffix) for name in names)

    return wanted


def _json_text(described: dict[str, Plain]) -> str:
    return json.dumps(described, separators=(",", ":"), ensure_ascii=False)


def _yaml_text(described: dict[str, Plain]) -> str:
    return "---\n" + yaml.safe_dump(described, sort_keys=False, allow_unicode=True).rstrip("\n")


_WRITERS: Final[dict[str, Writer]] = {"log": frame_line, "json": _json_text, "yaml": _yaml_text}


class Tracer:
    """Accepts collectors' clients on one listening socket and prints what they send."""

    def __init__(
        self,
        listener: socket.socket,
        write: Writer,
        wanted: Callable[[Frame], bool],
        unidirectional: bool,
        output: TextIO,
    ) -> None:
        """`output` gets the frames; faults of clients go to stderr."""
        self._listener = listener
        self._write = write
        self._wanted = wanted
        self._unidirectional = unidirectional
        self._output = output
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until an exception, such as KeyboardInterrupt, ends it; then close everything."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.data is None:
                        self._accept()
                    else:
                        self._receive(key.fileobj, key.data)
        finally:
            for key in list(self._selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    key.fileobj.close()
            self._selector.close()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        # replies are few and short; frames are read as they come
        client.setblocking(True)
        self._selector.register(client, selectors.EVENT_READ, ServerStream(self._unidirectional))

    def _receive(self, client: object, stream: ServerStream) -> None:
        assert isinstance(client, socket.socket)
        try:
            octets = client.recv(_RECEIVE)
            payloads = stream.feed(octets)
            replies = stream.replies()
            if replies:
                client.sendall(replies)
        except (OSError, FrameStreamError) as error:
            sys.stderr.write(f"connection closed: {error}\n")
            octets, payloads = b"", []
        for payload in payloads:
            self._print(payload)
        if not octets or stream.stopped:
            self._selector.unregister(client)
            client.close()

    def _print(self, payload: bytes) -> None:
        try:
            frame = decode_frame(payload)
        except DnstapError as error:
            sys.stderr.write(f"undecodable frame of {len(payload)} octets: {error}\n")
            return
        if self._wanted(frame):
            self._output.write(self._write(describe_frame(frame)) + "\n")
            self._output.flush()


def listen_unix(path: str) -> socket.socket:
    """Listen on a Unix socket; a socket file that nobody listens on any more is replaced.

    Raises OSError, also when the path is in use or is another kind of file.
    """
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def listen_tcp(text: str) -> socket.socket:
    """Listen on `IP:PORT`. Raises ValueError for a bad address and OSError."""
    address = parse_socket_address(text)
    listener = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address.sockaddr)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tracer until SIGINT or SIGTERM; returns the exit code, 1 after a failed start."""
    options = build_parser().parse_args(arguments)
    path: str | None = options.path
    try:
        listener = listen_unix(path) if path is not None else listen_tcp(options.address)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"Error: cannot listen on {path or options.address}: {error}\n")
        return 1
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        where = f"unix:{path}" if path is not None else _bound(listener)
        sys.stderr.write(f"listening on {where}\n")
        sys.stderr.flush()
        wanted = frame_filter(options.qname, options.type)
        Tracer(
            listener, _WRITERS[options.format], wanted, options.unidirectional, sys.stdout
        ).serve()
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # nobody reads on: leave without the interpreter's complaint at its last flush
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives to the end
    finally:
        signal.signal(signal.SIGTERM, previous)
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)
    return 0


def _bound(listener: socket.socket) -> str:
    """The address listened on, with the port that port 0 chose."""
    host, port = listener.getsockname()[:2]
    return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"


if __name__ == "__main__":
    sys.exit(main())
