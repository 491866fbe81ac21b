"""An issuer of access tokens: a real HTTP server with keys that it signs with, rotates and loses."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm


@cache
def rsa_key(which: int, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return one of the keys; to make one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class IssuerServer:
    """Serves its description and its public keys, and signs tokens."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"one": rsa_key(1)}
        # Keys that are served as they are.
        self.odd_keys: list[dict[str, Any]] = []
        self.is_away = False
        self.asked: list[tuple[str, str | None]] = []
        self.described_as: str | None = None
        self.body: bytes | None = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers.get("Authorization")))
                if server.is_away:
                    self.send_error(503)
                    return
                body = server.body
                if body is None:
                    body = json.dumps(server.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True

    @property
    def url(self) -> str:
        """What its tokens call it."""
        return f"http://127.0.0.1:{self.http.server_address[1]}/realm"

    def answer(self, path: str) -> dict[str, Any]:
        """Return what is at a path."""
        if path == "/realm/.well-known/openid-configuration":
            return {"issuer": self.described_as or self.url, "jwks_uri": f"{self.url}/keys"}
        return {
            "keys": [*(self.public(kid, key) for kid, key in self.keys.items()), *self.odd_keys]
        }

    @staticmethod
    def public(kid: str, key: Any) -> dict[str, Any]:
        """Return the public half of a key."""
        if isinstance(key, rsa.RSAPrivateKey):
            jwk = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            return {**jwk, "kid": kid, "alg": "RS256", "use": "sig"}
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid}

    def token(
        self,
        *,
        kid: str | None = "one",
        key: Any = None,
        alg: str = "RS256",
        head: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a token; claims that are None are left out."""
        now = int(time.time())
        said: dict[str, Any] = {
            "iss": self.url,
            "aud": "windrow",
            "sub": "someone",
            "iat": now,
            "exp": now + 600,
            **claims,
        }
        headers = ({"kid": kid} if kid is not None else {}) | (head or {})
        signing = self.keys.get(str(kid), rsa_key(1)) if key is None else key
        with warnings.catch_warnings():
            # Some tests sign with a weak key.
            warnings.simplefilter("ignore")
            return jwt.encode(
                {name: value for name, value in said.items() if value is not None},
                signing,
                algorithm=alg,
                headers=headers,
            )


@contextmanager
def issuer_server() -> Iterator[IssuerServer]:
    """Serve an issuer in a thread."""
    server = IssuerServer()
    thread = Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()
