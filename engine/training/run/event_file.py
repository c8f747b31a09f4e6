"""A file of events, which TensorBoard reads: records of protocol buffers (tensorflow/core/util/event.proto).

Written here: only an event's time (field 1), step (2), version (3) and summary (5), of which a value has a tag (1), a
number (2), or text, as a tensor (8) of one string with the plugin (9) that shows it.
"""

from __future__ import annotations

import struct
from ctypes import c_float

VERSION = b"brain.Event:2"
STRING = 7  # DT_STRING
POLYNOMIAL = 0x82F63B78  # of CRC-32C (Castagnoli), its bits in reverse


def begin() -> bytes:
    """First record of a file."""
    return record(field(3, VERSION))


def scalar(tag: str, value: float, step: int, time: float) -> bytes:
    """`time` in seconds since 1970; a value beyond single precision is infinite."""
    return event(field(1, tag.encode()) + number(2, "f", c_float(value).value), step, time)


def text(tag: str, markdown: str, step: int, time: float) -> bytes:
    shape = field(2, field(2, count(1, 1)))
    tensor = count(1, STRING) + shape + field(8, markdown.encode())
    return event(field(1, tag.encode()) + field(8, tensor) + field(9, field(1, field(1, b"text"))), step, time)


def event(value: bytes, step: int, time: float) -> bytes:
    return record(number(1, "d", time) + count(2, step) + field(5, field(1, value)))


def record(data: bytes) -> bytes:
    """A TFRecord: length, data, and a checksum of each."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", checksum(length)) + data + struct.pack("<I", checksum(data))


def field(at: int, data: bytes) -> bytes:
    return varint(at << 3 | 2) + varint(len(data)) + data


def count(at: int, value: int) -> bytes:
    return varint(at << 3) + varint(value)


def number(at: int, kind: str, value: float) -> bytes:
    """`kind` is f or d, single or double precision."""
    return varint(at << 3 | (5 if kind == "f" else 1)) + struct.pack(f"<{kind}", value)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def checksum(data: bytes) -> int:
    """CRC-32C, turned and moved as TFRecord has it."""
    found = 0xFFFFFFFF
    for byte in data:
        found = TABLE[(found ^ byte) & 255] ^ found >> 8
    found ^= 0xFFFFFFFF
    return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF


def remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ POLYNOMIAL * (byte & 1)
    return byte


TABLE = [remainder(byte) for byte in range(256)]
