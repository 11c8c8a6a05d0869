#!/bin/sh
# vanish.sh PID DIRECTORY: waits for the process's end, whatever ends it. Then it ends the processes
# whose environment says DMUTEX_TEST_MARK=DIRECTORY, and those that are in the directory (a server may
# write its title over its environment), and removes the directory. In a chroot, the path of a process in
# another namespace begins outside.

trap '' HUP INT TERM
pid=$1
directory=$2

# A process that ends as others are looked for may start one in between: until there is none.
end_marked()
{
    while marked=$({
        grep -lzxF "DMUTEX_TEST_MARK=$directory" /proc/[0-9]*/environ
        find /proc/[0-9]*/cwd -maxdepth 0 -lname "*$directory*"
    } 2>/dev/null | cut -d/ -f3 | sort -u) && [ -n "$marked" ]; do
        kill -9 $marked 2>/dev/null
        sleep 0.05
    done
}

cd /
tail --pid="$pid" -s 0.2 -f /dev/null
end_marked
rm -rf "$directory"
