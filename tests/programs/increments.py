# increments.py DIRECTORY COUNT: increments a number in an LMDB, COUNT times. Says "ready", and begins with a byte of
# input.
import os
import sys
import time

import lmdb

database = lmdb.open(sys.argv[1], map_size=1 << 20, max_readers=16, sync=False)
print("ready", flush=True)
os.read(0, 1)
for _ in range(int(sys.argv[2])):
    with database.begin(write=True) as transaction:
        number = int(transaction.get(b"number") or 0)
        time.sleep(0.0002)  # lets other writers come in between
        transaction.put(b"number", b"%d" % (number + 1))
