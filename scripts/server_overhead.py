#!/usr/bin/env python3
"""What a token costs more from `coterie serve` than from `coterie bench`: same model, same flags, in turns.

scripts/server_overhead.py PROGRAM [--tokens 256] [--rounds 9] [--temperature 0] [-- MODEL FLAGS...]

Each round runs `bench` for so many tokens and streams as many to one client that throws them away. Times are milliseconds per
token. `clock`: as the client sees it, so its own share of the processor counts. `thread`: processor time of the thread that
generates (with -t 1 that is all of the model's work), `others`: of the server's other threads. On a busy machine the clock says
little; processor time still compares. The last line has the medians.
"""
import argparse
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time

TICK = 1e3 / os.sysconf("SC_CLK_TCK")  # milliseconds


def run_bench(program, tokens, repetitions, flags):
    """Milliseconds per token by the clock, and processor time of the whole program."""
    command = [program, "bench", "-p", "0", "-n", str(tokens), "-r", str(repetitions), "-o", "json", *flags]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 / statistics.median(report[0]["samples_ts"]), 1e3 * used


def bench(program, tokens, flags):
    """Per token: by the clock, and processor time without start and measuring of the machine."""
    clock, many = run_bench(program, tokens, 5, flags)
    _, one = run_bench(program, tokens, 1, flags)
    return clock, (many - one) / (4 * tokens)


class Server:
    def __init__(self, program, flags):
        command = [program, "serve", "--port", "0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = self.process.stdout.readline().rsplit("//", 1)[-1].split()[0]
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def processor(self):
        """Milliseconds used so far: by the busiest thread, and by all."""
        folder = f"/proc/{self.process.pid}"
        with open(f"{folder}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        threads = []
        for thread in os.listdir(f"{folder}/task"):
            try:
                with open(f"{folder}/task/{thread}/schedstat", encoding="ascii") as file:
                    threads.append(int(file.read().split()[0]) * 1e-6)
            except FileNotFoundError:  # it has just ended
                pass
        return max(threads), (int(fields[11]) + int(fields[12])) * TICK

    def answer(self, tokens, temperature):
        """Milliseconds per token between the first one and the last one."""
        body = json.dumps({"prompt": "The", "max_tokens": tokens, "ignore_eos": True, "temperature": temperature,
                           "stream": True, "cache_prompt": False})
        request = (f"POST /v1/completions HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}")
        first, tail = None, b""
        with socket.create_connection((self.host, self.port)) as connection:
            connection.sendall(request.encode())
            while part := connection.recv(1 << 16):
                last = time.perf_counter()
                if first is None and b"data:" in part:
                    first = last
                tail = (tail + part)[-4096:]
        drawn = re.search(rb'"predicted_n":(\d+)', tail)
        if not drawn or int(drawn[1]) != tokens:
            raise RuntimeError(f"the answer did not come whole: {tail[-400:]!r}")
        return 1e3 * (last - first) / (tokens - 1)

    def measure(self, tokens, temperature, answers=4):
        """Per token: clock, processor time of the generating thread, and of the others."""
        thread, total = self.processor()
        clock = statistics.median(self.answer(tokens, temperature) for _ in range(answers))
        thread_after, total_after = self.processor()
        thread_after, total_after = thread_after - thread, total_after - total
        return clock, thread_after / (answers * tokens), max(total_after - thread_after, 0) / (answers * tokens)

    def stop(self):
        self.process.terminate()
        self.process.wait()


LINE = ("bench: clock {:.3f}, processor {:.3f}; serve: clock {:.3f} ({:+.1f} %), thread {:.3f} ({:+.1f} %), "
        "others {:.3f} ({:.1f} %)")


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
            alone, used = bench(options.program, options.tokens, flags)
            clock, thread, others = server.measure(options.tokens, options.temperature)
            rows.append((alone, used, clock, 100 * (clock / alone - 1), thread, 100 * (thread / used - 1), others,
                         100 * others / used))
            print(LINE.format(*rows[-1]), flush=True)
    finally:
        server.stop()
    print("medians: " + LINE.format(*(statistics.median(column) for column in zip(*rows))))


if __name__ == "__main__":
    main()
