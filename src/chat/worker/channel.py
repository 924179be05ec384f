"""The worker's side of its pipe: frames of four little-endian length bytes and a body.

A request is a JSON object. A reply is one byte, "+" and the answer's text or "-" and a JSON object with the
keys "kind", "message" and, where one is known, "line".
"""
import json
import os
import struct

CHANNEL = 3
LONGEST_MESSAGE = 2000


def receive_frame():
    """Returns a request's bytes, or None once the other end is closed."""
    header = receive_bytes(4)
    return header and receive_bytes(struct.unpack("<I", header)[0])


def receive_bytes(count):
    data = bytearray(count)
    view = memoryview(data)
    done = 0
    while done < count:
        read = os.readv(CHANNEL, [view[done:]])
        if read == 0:
            return None
        done += read
    return data


def send_frame(*parts):
    view = memoryview(b"".join((struct.pack("<I", sum(map(len, parts))), *parts)))
    while view:
        view = view[os.write(CHANNEL, view):]


def send_answer(data):
    send_frame(b"+", data)


def send_error(kind, message, line=None):
    """Errors are one line of valid Unicode, whatever the template put into them."""
    message = " ".join(str(message)[:LONGEST_MESSAGE].split())
    message = message.encode("utf-8", "replace").decode()
    send_frame(b"-", json.dumps({"kind": kind, "message": message, "line": line}).encode())
