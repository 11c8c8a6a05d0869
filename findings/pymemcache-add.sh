#!/bin/sh
# pymemcache: add() says True to everybody, so a lock made of it excludes nobody.
#
# Expected: add() of a key that is there returns False. That is memcached's usual lock, and what cas() of the same
#   client does: it says False when the value has changed.
# Found: with a client as it comes, add() returns True although the server refused it, and delete() returns True for a
#   key that is not there. With default_noreply=False both tell the truth.
# Where: pymemcache 4.0.0, pymemcache/client/base.py. Client.__init__() has default_noreply=True; add() then sends
#   "noreply" and answers True without reading anything. cas() has noreply=False of its own. HashClient does the same.
# Why it matters: every process believes that it owns the lock, no test with one process shows it, and switching a
#   program from another client of memcached to this one is enough.

. "$(dirname "$0")/lib.sh"

install_debian memcached=1.6.18-1+deb12u1
install_python pymemcache==4.0.0
# shellcheck disable=SC2046 # an option or nothing
"$debian/usr/bin/memcached" $([ "$(id -u)" != 0 ] || echo "-u root") -s "$scratch/memcached.sock" &
servers="$servers $!"
wait_for test -S "$scratch/memcached.sock"

cat >"$scratch/run.py" <<'END'
import sys
from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient

path = sys.argv[1]
for title, make in (("Client", lambda: Client(path)), ("HashClient", lambda: HashClient([path])),
                    ("Client without noreply", lambda: Client(path, default_noreply=False))):
    a, b = make(), make()
    a.flush_all(noreply=False)
    print(title)
    print("  add by a:", a.add("lock", "a", expire=60))
    print("  add by b:", b.add("lock", "b", expire=60))
    print("  owner on the server:", b.get("lock").decode())
    value, version = a.gets("lock")
    a.set("lock", "c", noreply=False)
    print("  cas of an old version:", a.cas("lock", "d", version))
    print("  delete of no key:", a.delete("nothing"))
END
"$python" "$scratch/run.py" "$scratch/memcached.sock" >"$scratch/said"

check "$scratch/said" <<'END'
Client
  add by a: True
  add by b: True
  owner on the server: a
  cas of an old version: False
  delete of no key: True
HashClient
  add by a: True
  add by b: True
  owner on the server: a
  cas of an old version: False
  delete of no key: True
Client without noreply
  add by a: True
  add by b: False
  owner on the server: a
  cas of an old version: False
  delete of no key: False
END
