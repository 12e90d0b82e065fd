"""Runs a program on a pseudo-terminal: waits for each text, types what belongs to it, then waits for the end.

python3 terminal.py '[["expect", "type"], …]' PROGRAM ARGS…
Prints everything that was on the screen, and ends with the program's exit code.
"""
import json
import os
import pty
import select
import sys
import time

steps = json.loads(sys.argv[1])
pid, master = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])

patience = 300
screen = b""
seen = 0
deadline = time.monotonic() + patience


def more():
    """Reads what has come; False when the program has closed its side."""
    global screen
    left = deadline - time.monotonic()
    ready, _, _ = select.select([master], [], [], max(0, left))
    if not ready:
        os.kill(pid, 9)
        sys.stderr.write("nothing more came for %d seconds; the screen so far:\n%s" % (patience, screen.decode("utf8", "replace")))
        sys.exit(1)
    try:
        data = os.read(master, 65536)
    except OSError:
        return False
    screen += data
    return bool(data)


for expect, keys in steps:
    wanted = expect.encode()
    deadline = time.monotonic() + patience
    while wanted not in screen[seen:]:
        if not more():
            sys.stderr.write("the program ended before it showed %r:\n%s" % (expect, screen.decode("utf8", "replace")))
            sys.exit(1)
    seen = screen.index(wanted, seen) + len(wanted)
    os.write(master, keys.encode())

deadline = time.monotonic() + patience
while more():
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.write(screen.decode("utf8", "replace"))
sys.exit(os.waitstatus_to_exitcode(status) % 256)
