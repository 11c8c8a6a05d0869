#!/bin/sh
# vanish.sh PID DIRECTORY: waits for any end of the process. Then kills the processes with
# DMUTEX_TEST_MARK=DIRECTORY in the environment, and the processes in the directory (a server may write its title over
# its environment), and removes the directory. In a chroot, the path of a process in another namespace begins outside.

trap '' HUP INT TERM
pid=$1
directory=$2

# Searches until no process is found, because a process may start another process during a search.
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
