"""An issuer of tokens: a real HTTP server that signs people in, and rotates and loses its keys."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

CLIENT = "windrow-pages"


@cache
def rsa_key(which: int, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return one of the keys, which are kept because making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class IssuerServer:
    """Serves its description and public keys, signs tokens, and signs people in.

    Attributes:
        people: Claims of the people who may sign in, by name.
        client_id: The only client, which must prove itself with `client_secret` if that is set.
        backs: The only addresses to which it sends people back.
        id_claims: Claims of ID tokens to change; None leaves one out.
        id_options: Options for signing ID tokens, as `token` takes them.
        granted: Answers of its token endpoint, instead of the correct ones.
        described: Fields of its description to add or to change.
        drips: Whether the answer of its token endpoint never ends.
        back_with: Fields to change on the way back; None leaves one out.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"one": rsa_key(1)}
        # Keys that are served unchanged.
        self.odd_keys: list[dict[str, Any]] = []
        self.is_away = False
        self.asked: list[tuple[str, str | None]] = []
        self.described_as: str | None = None
        self.body: bytes | None = None
        self.people: dict[str, dict[str, Any]] = {}
        self.client_id = CLIENT
        self.client_secret: str | None = None
        self.backs: set[str] = set()
        self.id_claims: dict[str, Any] = {}
        self.id_options: dict[str, Any] = {}
        self.granted: list[tuple[int, bytes]] = []
        self.described: dict[str, Any] = {}
        self.back_with: dict[str, str | None] = {}
        self.drips = False
        self.forms: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers.get("Authorization")))
                if server.is_away:
                    self.send_error(503)
                elif self.path.startswith("/realm/authorize?"):
                    self._answer(200, server.page(self._fields(urlsplit(self.path).query)), "html")
                else:
                    body = server.body
                    if body is None:
                        body = json.dumps(server.answer(self.path)).encode()
                    self._answer(200, body, "json")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                fields = self._fields(body)
                if server.is_away:
                    self.send_error(503)
                elif self.path == "/realm/token" and server.drips:
                    self._drip()
                elif self.path == "/realm/token":
                    server.forms.append(fields)
                    self._answer(*server.redeem(fields, self.headers.get("Authorization")), "json")
                else:
                    self.send_response(303)
                    self.send_header("Location", server.sent_back(fields))
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def _drip(self) -> None:
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while server.drips:
                        self.wfile.write(b" ")
                        time.sleep(0.02)

            def _fields(self, body: str) -> dict[str, str]:
                return dict(parse_qsl(body, strict_parsing=True))

            def _answer(self, status: int, body: bytes, kind: str) -> None:
                # Real servers compress if the client accepts it.
                is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
                body = gzip.compress(body) if is_packed else body
                self.send_response(status)
                self.send_header("Content-Type", f"text/{kind}")
                self.send_header("Content-Length", str(len(body)))
                if is_packed:
                    self.send_header("Content-Encoding", "gzip")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True

    @property
    def url(self) -> str:
        """The issuer's name in its tokens."""
        return f"http://127.0.0.1:{self.http.server_address[1]}/realm"

    def answer(self, path: str) -> dict[str, Any]:
        """Return the document at a path."""
        if path == "/realm/.well-known/openid-configuration":
            return {
                "issuer": self.described_as or self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize?theme=plain",
                "token_endpoint": f"{self.url}/token",
                "authorization_response_iss_parameter_supported": True,
                **self.described,
            }
        return {
            "keys": [*(self.public(kid, key) for kid, key in self.keys.items()), *self.odd_keys]
        }

    def page(self, query: dict[str, str]) -> bytes:
        """Return the page on which people say who they are."""
        assert query["theme"] == "plain"
        inputs = "".join(
            f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
            for name, value in query.items()
        )
        return (
            f'<!doctype html><title>Who are you?</title><link rel="icon" href="data:,">'
            f'<form method="post" action="/realm/authorize">{inputs}'
            '<label>Name <input name="who"></label>'
            '<button>Allow</button><button name="denied" value="1">Deny</button></form>'
        ).encode()

    def sent_back(self, query: dict[str, str]) -> str:
        """Return the address to which somebody is sent back after signing in or refusing."""
        assert query["redirect_uri"] in self.backs, query
        assert query["client_id"] == self.client_id
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        fields: dict[str, str | None] = {"state": query["state"], "iss": self.url}
        if "denied" in query or query["who"] not in self.people:
            fields |= {"error": "access_denied", "error_description": "<b>call 555-0100</b>"}
        else:
            code = secrets.token_urlsafe(16)
            fields["code"] = code
            self._codes[code] = query
        fields |= self.back_with
        present = {name: value for name, value in fields.items() if value is not None}
        return f"{query['redirect_uri']}?{urlencode(present)}"

    def redeem(self, form: dict[str, str], authorization: str | None) -> tuple[int, bytes]:
        """Return the tokens for a code, once."""
        if self.granted:
            return self.granted.pop(0)
        if self.client_secret is not None:
            both = f"{self.client_id}:{quote_plus(self.client_secret)}"
            basic = f"Basic {base64.b64encode(both.encode()).decode()}"
            if authorization != basic and form.get("client_secret") != self.client_secret:
                return 401, b'{"error": "invalid_client"}'
        # A code works only once, whoever brings it.
        query = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            query is None
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != query["redirect_uri"]
            or form["client_id"] != self.client_id
            or challenge != query["code_challenge"]
        ):
            return 400, b'{"error": "invalid_grant"}'
        claims = {
            "aud": self.client_id,
            "sub": query["who"],
            "nonce": query["nonce"],
            **self.people[query["who"]],
            **self.id_claims,
        }
        answer = {
            "access_token": "opaque",
            "refresh_token": "not to be kept",
            "token_type": "Bearer",
            "id_token": self.token(**self.id_options, **claims),
        }
        return 200, json.dumps(answer).encode()

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
        payload: dict[str, Any] = {
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
                {name: value for name, value in payload.items() if value is not None},
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
