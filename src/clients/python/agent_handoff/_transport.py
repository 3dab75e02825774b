"""One request over HTTP, on connections that are kept."""

from __future__ import annotations

import base64
import http.client
import io
import ipaddress
import os
import re
import select
import socket
import ssl
import urllib.parse
import urllib.request
from collections import deque
from dataclasses import dataclass, replace
from email.message import Message
from typing import Any, cast

from ._scope import Scope, now
from .errors import HandoffError

#: Connections that are kept beside those in use.
_MAX_KEPT = 100
#: The longest that an attempt may take, in seconds: a socket takes no longer time.
_LONGEST = 2_000_000.0


@dataclass(frozen=True)
class Address:
    """Where the service is."""

    scheme: str
    host: str
    port: int | None
    #: The path that all others come after, without a slash at its end.
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port is None else f':{self.port}'}{self.path}"


def address_of(url: str, name: str = "base_url or HANDOFF_URL") -> Address:
    """Raises ValueError for what can't be one."""
    try:
        parts = urllib.parse.urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode()
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or re.search(r"[\x00-\x20\x7f]", url.strip()):
        raise ValueError(f"the address ({name}) must be an http(s) URL, as in http://127.0.0.1:8080")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{name} takes no user and no password: the key is an option of its own")
    return Address(parts.scheme, host, port, urllib.parse.quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~"))


@dataclass(frozen=True)
class Proxy:
    """A proxy in front of the service, with the header fields that it wants."""

    address: Address
    headers: dict[str, str]


def proxy_of(address: Address) -> Proxy | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say, or the system's settings."""
    host = address.host if address.port is None else f"{address.host}:{address.port}"
    proxies = urllib.request.getproxies()
    name = address.scheme if proxies.get(address.scheme) else "all"
    url = proxies.get(name)
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or proxies.get("no", "")
    if not url or urllib.request.proxy_bypass(host) or _is_exempt(address, exempt):
        return None
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https"):
        # Without the value: it may have a password.
        raise ValueError(
            f"{name.upper()}_PROXY names a proxy that can't be used: it takes an http:// or https:// address; "
            f"NO_PROXY={address.host} goes to the service without one"
        )
    headers = {}
    if parts.username is not None:
        user = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    found = address_of(bare, "the variable of a proxy")
    if found.scheme == "https" and address.scheme == "https":
        raise ValueError("a proxy for an https address must be an http URL")
    return Proxy(found, headers)


def _is_exempt(address: Address, exempt: str) -> bool:
    """Whether NO_PROXY has the host, by the command's rules.

    urllib knows no networks and no default ports, and takes neither spaces nor a * among others.
    """
    host = address.host.lower()
    port = address.port or (443 if address.scheme == "https" else 80)
    places = (host, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    for entry in re.split(r"[\s,]+", exempt.lower()):
        if "/" in entry:
            if _is_in(host, entry):
                return True
            continue
        name = re.sub(r"^\[([^\]]*)\]$", r"\1", re.sub(r"^\*?\.+", "", entry))
        if entry == "*" or (name and any(place == name or place.endswith(f".{name}") for place in places)):
            return True
    return False


def _is_in(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    status: int
    headers: Message
    body: bytes
    #: The request was sent before, on a connection that had been kept and ended: the service may have had it twice.
    is_second: bool = False


class _Timed(io.RawIOBase):
    """Reads what comes until a moment, however slowly it comes, and remembers where it ended."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        # By this the socket stays open until all is read, also where no further request is to come over it.
        self._raw = sock.makefile("rb", buffering=0)
        self._deadline = deadline
        self.has_begun = False
        self.has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - now()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        count: int = self._raw.readinto(buffer) or 0
        if count == 0:
            self.has_ended = True
        else:
            self.has_begun = True
        return count

    def close(self) -> None:
        super().close()
        self._raw.close()

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """What http.client asks a socket for."""
        return io.BufferedReader(self, 65_536)


#: How a connection is found to have ended.
_ENDS = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)

#: Whatever goes wrong on the way.
_FAULTS = (OSError, http.client.HTTPException, ValueError)


class _Joining(http.client.HTTPConnection):
    """Sends a request's header and its body together: each sending is a third of what a call costs."""

    _held: list[bytes] | None = None

    def send(self, data: Any) -> None:
        if self._held is None:
            super().send(data)
        else:
            self._held.append(data)

    def ask(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> None:
        held: list[bytes] = []
        self._held = held
        try:
            self.request(method, url, body, headers)
        finally:
            self._held = None
        self.send(b"".join(held))


class _JoiningTls(_Joining, http.client.HTTPSConnection):
    """The same over TLS."""


class _Cut(http.client.HTTPException):
    """The connection ended within the answer."""


class _Stale(Exception):
    """A kept connection had ended before the answer began."""


class Transport:
    """Sends requests to one address. Threads share it, and so do processes: a child makes its own connections."""

    def __init__(self, address: Address, context: ssl.SSLContext | None = None) -> None:
        self.address = address
        self._proxy = proxy_of(address)
        self._context = context
        # Its operations are atomic, so that no lock can be left locked by a fork.
        self._kept: deque[_Joining] = deque()
        self._pid = os.getpid()
        self.is_closed = False
        # Through a proxy http's requests name the whole address; https's go through a tunnel.
        through = self._proxy is not None and address.scheme == "http"
        self._prefix = str(address) if through else address.path
        self._more = dict(self._proxy.headers) if through and self._proxy is not None else {}

    def context(self) -> ssl.SSLContext:
        """What https addresses are checked with."""
        self._context = self._context or ssl.create_default_context()
        return self._context

    def close(self) -> None:
        self.is_closed = True
        self.drop_kept()

    def drop_kept(self) -> None:
        """Goes on with new connections. Where one that was kept is dead and says nothing, the others are dead too."""
        while self._kept:
            try:
                # In a process that was forked this closes its own copy, and ends nothing for the parent.
                self._kept.pop().close()
            except IndexError:
                return

    def send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float, scope: Scope | None
    ) -> Reply:
        """Sends a request once, and reads the whole answer.

        Raises HandoffError, or TooLate where the scope's time is over.
        """
        fresh = False
        deadline = now() + min(seconds, _LONGEST)
        if scope is not None:
            scope.check()
            deadline = deadline if scope.deadline is None else min(deadline, scope.deadline)
        while True:
            connection, is_kept = self._connection(fresh)
            try:
                reply = self._attempt(connection, is_kept, method, path, body, headers, deadline, scope)
                return replace(reply, is_second=True) if fresh else reply
            except _Stale:
                # A kept connection may have ended unseen; the second time it is a new one.
                fresh = True
            except _FAULTS as fault:
                if scope is not None:
                    scope.check()
                raise _error_of(fault, seconds) from fault
            except BaseException:
                # Interrupted: what comes yet belongs to no other request.
                connection.close()
                raise

    def _attempt(
        self, connection: _Joining, is_kept: bool, method: str, path: str, body: bytes | None,
        headers: dict[str, str], deadline: float, scope: Scope | None,
    ) -> Reply:
        timed: list[_Timed] = []

        def response_class(sock: socket.socket, *args: Any, **more: Any) -> http.client.HTTPResponse:
            timed.append(_Timed(sock, deadline))
            return http.client.HTTPResponse(cast(socket.socket, timed[-1]), *args, **more)

        def stop() -> None:
            # Wakes the thread that reads; that thread closes it.
            sock = connection.sock
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

        if scope is not None:
            scope.on_cancel(stop)
        is_whole = False
        try:
            left = max(0.001, deadline - now())
            connection.timeout = left
            if connection.sock is not None:
                connection.sock.settimeout(left)
            else:
                connection.connect()
                if scope is not None and scope.cancelled:
                    raise ConnectionAbortedError
            connection.response_class = response_class  # type: ignore[assignment]
            connection.ask(method, self._prefix + path, body, {**headers, **self._more})
            response = connection.getresponse()
            if timed[-1].has_ended:
                raise _Cut("the connection ended within the header")
            answer = Reply(response.status, response.msg, response.read())
            is_whole = not response.will_close
            return answer
        except _FAULTS as fault:
            # Where the kept connection had ended, nothing has been answered.
            if is_kept and not any(one.has_begun for one in timed) and isinstance(fault, _ENDS):
                if scope is None or not scope.cancelled:
                    raise _Stale from None
            raise
        finally:
            if scope is not None:
                scope.forget(stop)
            if is_whole and not (scope is not None and scope.cancelled):
                self._keep(connection)
            else:
                connection.close()

    def _connection(self, fresh: bool) -> tuple[_Joining, bool]:
        if self.is_closed:
            raise RuntimeError("the client is closed")
        if self._pid != os.getpid():
            self.drop_kept()
            self._pid = os.getpid()
        while not fresh:
            try:
                connection = self._kept.pop()
            except IndexError:
                break
            if not _has_news(connection.sock):
                return connection, True
            connection.close()
        return self._new(), False

    def _keep(self, connection: _Joining) -> None:
        if self.is_closed or len(self._kept) >= _MAX_KEPT or self._pid != os.getpid():
            connection.close()
        else:
            self._kept.append(connection)

    def _new(self) -> _Joining:
        address = self.address
        to = address if self._proxy is None else self._proxy.address
        if to.scheme == "https" or address.scheme == "https":
            self._context = self._context or ssl.create_default_context()
        tunnels = self._proxy is not None and address.scheme == "https"
        if to.scheme == "https" or tunnels:
            port = to.port or (443 if to.scheme == "https" else 80)
            connection: _Joining = _JoiningTls(to.host, port, context=self._context)
        else:
            connection = _Joining(to.host, to.port or 80)
        if tunnels and self._proxy is not None:
            connection.set_tunnel(address.host, address.port or 443, self._proxy.headers)
        return connection


def _has_news(sock: socket.socket | None) -> bool:
    """Whether there is something to read on a connection on which nothing is due: its end, mostly."""
    if sock is None:
        return True
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return bool(poll.poll(0))
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


_OTHER_TLS = re.compile(r"wrong.version.number|record.layer.failure|packet.length.too.long|unknown.protocol", re.I)


def _error_of(fault: Exception, seconds: float) -> HandoffError:
    if isinstance(fault, TimeoutError):
        return HandoffError("timeout", detail=f"No answer within {seconds:g} s.", retryable=True)
    reason = str(fault) or type(fault).__name__
    retryable = True
    if isinstance(fault, ssl.SSLCertVerificationError):
        retryable = False
    elif isinstance(fault, ssl.SSLError) and _OTHER_TLS.search(reason):
        reason, retryable = "this port doesn’t speak TLS; the address begins with http://, not https://", False
    elif isinstance(fault, http.client.IncompleteRead):
        reason = "the connection ended within the answer"
    elif isinstance(fault, http.client.BadStatusLine) and not isinstance(fault, _ENDS):
        line = str(fault.args[0]) if fault.args else ""
        if line.endswith("\n") or not "HTTP/1.".startswith(line[:7]):
            reason, retryable = "what answered there isn’t HTTP; perhaps the address begins with https://", False
        else:
            reason = "the connection ended within the answer"
    elif isinstance(fault, http.client.UnknownProtocol):
        reason, retryable = "what answered there isn’t HTTP/1.1", False
    return HandoffError("connection_failed", detail=f"No answer: {reason.rstrip('.')}.", retryable=retryable)
