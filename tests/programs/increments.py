# increments.py DIRECTORY COUNT: adds one, often, to a number in an LMDB. Says that it is ready, and
# begins with a byte of its input.
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
        time.sleep(0.0002)  # for others to come in between
        transaction.put(b"number", b"%d" % (number + 1))
