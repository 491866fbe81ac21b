"""Seals of packs: a digest of a pack's footer within it, since pages have checksums, and footers none.

`PackFooter.java` compares a footer with its seal before Spark reads by it.
"""

from __future__ import annotations

import hashlib
import uuid

# A key of each pack's own, so that no two packs are the same file. Its value is an id, and the seal.
KEY = b"windrow.pack"
_ID_DIGITS, _DIGITS = 32, 64
# How Thrift writes the key, and before the value its length.
_MARK = KEY + b"\x18" + bytes([_ID_DIGITS + _DIGITS])


def unsealed() -> bytes:
    """Return a value for the key, of a pack of its own, with room for the seal."""
    return uuid.uuid4().hex.encode() + b"0" * _DIGITS


def sealed(footer: bytes) -> bytes:
    """Return a footer, as Thrift, with its seal.

    Args:
        footer: The footer, whose key has a value of `unsealed`.
    """
    at = footer.index(_MARK) + len(_MARK) + _ID_DIGITS
    digest = hashlib.sha256(footer).hexdigest().encode()
    return b"".join((footer[:at], digest, footer[at + _DIGITS :]))
