#!/usr/bin/env python3
"""What a token costs more from `coterie serve` than from `coterie bench`: same model, same flags, in turns.

scripts/server_overhead.py PROGRAM [--tokens 256] [--rounds 9] [--temperature 0] [-- MODEL FLAGS...]

Each round runs `bench -n TOKENS` and one streamed answer of as many tokens, read by one client that does nothing with them.
Prints milliseconds per token and the ratio of each round; the last line has the medians. The server's figure is the time
between the first and the last token as the client sees it, so the client's own share of the processor counts, too.
"""
import argparse
import json
import socket
import statistics
import subprocess
import sys
import time


def bench(program, tokens, flags):
    """Milliseconds per token."""
    command = [program, "bench", "-p", "0", "-n", str(tokens), "-r", "3", "-o", "json", *flags]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return 1e3 / statistics.median(report[0]["samples_ts"])


class Server:
    def __init__(self, program, flags):
        command = [program, "serve", "--port", "0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = self.process.stdout.readline().rsplit("//", 1)[-1].split()[0]
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def answer(self, tokens, temperature):
        """Milliseconds per token as the client and as the server count them."""
        body = json.dumps({"prompt": "The", "max_tokens": tokens, "ignore_eos": True, "temperature": temperature,
                           "stream": True, "cache_prompt": False})
        request = (f"POST /v1/completions HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}")
        with socket.create_connection((self.host, self.port)) as connection:
            connection.sendall(request.encode())
            parts, first = [], None
            while part := connection.recv(1 << 16):
                last = time.perf_counter()
                if first is None and b"data:" in part:
                    first = last
                parts.append(part)
        text = b"".join(parts)
        timings = json.loads(text[text.index(b'"timings":') + 10:text.index(b"}", text.index(b'"timings":')) + 1])
        return 1e3 * (last - first) / (tokens - 1), timings["predicted_ms"] / (tokens - 1)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--temperature", type=float, default=0.0)
    options = parser.parse_args(arguments)

    server = Server(options.program, flags)
    rows = []
    try:
        server.answer(options.tokens, options.temperature)
        for _ in range(options.rounds):
            alone = bench(options.program, options.tokens, flags)
            client, told = server.answer(options.tokens, options.temperature)
            rows.append((alone, client, told, 100 * (client / alone - 1)))
            print("bench {:.3f} ms, client {:.3f} ms, server's count {:.3f} ms: {:+.1f} %".format(*rows[-1]), flush=True)
    finally:
        server.stop()
    print("medians: bench {:.3f} ms, client {:.3f} ms, server's count {:.3f} ms: {:+.1f} %".format(
        *(statistics.median(column) for column in zip(*rows))))


if __name__ == "__main__":
    main()
