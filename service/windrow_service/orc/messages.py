"""The messages that ORC's footers consist of, as far as they are read here."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

__all__ = ["DecodeError", "FileTail", "PostScript"]

_PACKAGE = "windrow.orc"
# Name, number and type of each field. Text is read as bytes: not every writer writes UTF-8.
_MESSAGES: Final = {
    "PostScript": """
        footer_length 1 uint64, compression 2 int32, block_size 3 uint64,
        version 4 repeated uint32, writer_version 6 uint32, magic 8000 bytes""",
    "FileTail": "postscript 1 PostScript, footer 2 Footer",
    "Footer": """
        stripes 3 repeated Stripe, types 4 repeated Type, row_count 6 uint64,
        statistics 7 repeated Statistics, writer 9 uint32, encryption 10 bytes""",
    "Stripe": """
        offset 1 uint64, index_length 2 uint64, data_length 3 uint64, footer_length 4 uint64,
        row_count 5 uint64""",
    "Type": """
        kind 1 int32, subtypes 2 repeated uint32, names 3 repeated bytes, precision 5 uint32,
        scale 6 uint32, attributes 7 repeated Attribute, length 4 uint32""",
    "Attribute": "key 1 bytes, value 2 bytes",
    "Statistics": """
        value_count 1 uint64, integers 2 Integers, doubles 3 Doubles, strings 4 Strings,
        buckets 5 Buckets, decimals 6 Decimals, dates 7 Dates, times 9 Times, has_null 10 bool""",
    "Integers": "minimum 1 sint64, maximum 2 sint64",
    "Doubles": "minimum 1 double, maximum 2 double, sum 3 double",
    "Strings": "minimum 1 bytes, maximum 2 bytes, lower_bound 4 bytes, upper_bound 5 bytes",
    "Buckets": "counts 1 repeated uint64",
    "Decimals": "minimum 1 bytes, maximum 2 bytes",
    "Dates": "minimum 1 sint32, maximum 2 sint32",
    "Times": """
        minimum 1 sint64, maximum 2 sint64, lower_bound 3 sint64, upper_bound 4 sint64""",
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="orc.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split(","):
            field_name, number, *repeated, type_ = field.split()
            entry = message.field.add(name=field_name, number=int(number))
            entry.label = entry.LABEL_REPEATED if repeated else entry.LABEL_OPTIONAL
            if type_ in _MESSAGES:
                entry.type, entry.type_name = entry.TYPE_MESSAGE, f".{_PACKAGE}.{type_}"
            else:
                entry.type = entry.Type.Value(f"TYPE_{type_.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()
PostScript: Final[Any] = _CLASSES["PostScript"]
FileTail: Final[Any] = _CLASSES["FileTail"]
