#!/bin/sh
# memcached -M: a command that only creates a key, and is refused, deletes the key that is there.
#
# Expected: with -M a full server refuses writes and loses nothing. A meta set that may only create the key (ME), or only
#   replace one CAS number (C), changes nothing if it is refused.
# Found: "SERVER_ERROR out of memory storing object", and the key is gone. add and cas, the same commands of the text
#   protocol from before, leave it as it is.
# Where: memcached 1.6.18, "ms" in all modes. The server frees the old value as soon as there is no memory for the new
#   one, before it looks at the mode and the number.
# Why it matters: ME is how a client of the meta protocol takes a lock. On a full server whoever asks for a lock that
#   is held is refused, and frees it: as soon as there is memory the next one gets it, although nothing was evicted.

. "$(dirname "$0")/lib.sh"

need python3
install_debian memcached=1.6.18-1+deb12u1
port=$((20000 + $$ % 10000))
"$debian/usr/bin/memcached" -u "$(id -un)" -l 127.0.0.1 -p "$port" -M -m 2 >"$scratch/log" 2>&1 &
servers="$servers $!"

cat >"$scratch/ask.py" <<'END'
import socket
import sys

server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
answers = server.makefile("rb")


def ask(line, value=None):
    server.sendall(line + b"\r\n" + (value + b"\r\n" if value else b""))
    return answers.readline().strip().decode()


def holder():
    answer = ask(b"mg lock v")
    return answers.readline().strip().decode() if answer.startswith("VA") else "nobody"


def show(what, answer):
    print("%s: %s; the lock has: %s" % (what, answer, holder()))


print("A takes the lock: " + ask(b"add lock 0 0 5", b"A....") + ", and the server gets full")
count = 0
while ask(b"add other%d 0 0 5" % count, b"xxxxx") == "STORED":
    count += 1
show("B: add", ask(b"add lock 0 0 5", b"B...."))
show("B: cas with a wrong number", ask(b"cas lock 0 0 5 999999", b"B...."))
show("B: ms, mode add", ask(b"ms lock 5 ME", b"B...."))
END
wait_for python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))"
python3 "$scratch/ask.py" "$port" >"$scratch/said"

check "$scratch/said" <<'END'
A takes the lock: STORED, and the server gets full
B: add: SERVER_ERROR out of memory storing object; the lock has: A....
B: cas with a wrong number: SERVER_ERROR out of memory storing object; the lock has: A....
B: ms, mode add: SERVER_ERROR out of memory storing object; the lock has: nobody
END
