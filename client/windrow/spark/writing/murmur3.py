"""The inverse of Spark's hash of an int, which sends a row to a Spark partition of our choice."""

from __future__ import annotations

_SEED = 42
_WORD = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_FINAL_1, _FINAL_2 = 0x85EBCA6B, 0xC2B2AE35


def int_with_hash(hashed: int) -> int:
    """Return the int whose hash in Spark is `hashed`; every 32-bit number has just one.

    Each step of Murmur3 (x86, 32 bit, Austin Appleby) over one word of four bytes is undone, the
    last one first: multiplications by odd numbers, rotations and xors with shifts.

    Args:
        hashed: From 0 to 2^32 - 1, or negative as Spark shows it.

    Returns:
        A signed 32-bit number.
    """
    h = hashed & _WORD
    h ^= h >> 16
    h = _divided(h, _FINAL_2)
    h ^= (h >> 13) ^ (h >> 26)
    h = _divided(h, _FINAL_1)
    h ^= h >> 16
    h ^= 4
    h = _divided(h - 0xE6546B64, 5)
    h = _rotated_right(h, 13)
    k = _divided(h ^ _SEED, _C2)
    k = _divided(_rotated_right(k, 15), _C1)
    return k - (1 << 32) if k >> 31 else k


def _divided(product: int, odd: int) -> int:
    return product * pow(odd, -1, 1 << 32) & _WORD


def _rotated_right(word: int, bits: int) -> int:
    return (word >> bits | word << (32 - bits)) & _WORD
