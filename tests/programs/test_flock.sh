#!/bin/sh
# util-linux's flock, as in crontabs and scripts, on two hosts with separate lock files.

. "$srcdir/tests/programs/lib.sh"
start_hosts

locked "flock -n" "exit status 1" <<'END'
exec flock -n "$HERE/job.lock" "$JOB"
END

locked "flock -n, on a descriptor of a shell" "exit status 1" <<'END'
(
    flock -n 9 || exit 1
    "$JOB"
) 9>"$HERE/job.lock"
END

locked "flock -w" "exit status 7" <<'END'
exec flock -w 1 -E 7 "$HERE/job.lock" "$JOB"
END

# ---------------------------------------------------------------------------
# Waiters
# ---------------------------------------------------------------------------
# second_waits: the script is inside on a, and waits on b.
second_waits()
{
    outside
    begin_with_rules a
    await is_inside a
    begin_with_rules b
    await is_waited_for jobs/job.lock
    is "inside, when the second waits" "$(inside)" a
}

for wait in '' '-w 60'; do
    echo "exec flock $wait \"\$HERE/job.lock\" \"\$JOB\"" >"$scratch/script"
    second_waits
    end a
    await is_inside "a b"
    end b
    result "flock $wait: who waits on the other host comes next"
done

# ---------------------------------------------------------------------------
# Killed holders
# ---------------------------------------------------------------------------
# processes HOST WORDS: the pids of the host's processes with the words in the arguments.
processes()
{
    for directory in $(grep -lsF -e "$2" /proc/[0-9]*/cmdline); do
        directory=${directory%/cmdline}
        ! grep -qszxF "DMUTEX_HOST=$1" "$directory/environ" ||
            ! grep -qszxF "DMUTEX_TEST_MARK=$scratch" "$directory/environ" || echo "${directory#/proc/}"
    done
}
no_keepers() { [ -z "$(processes a /keeper/keeper-)$(processes b /keeper/keeper-)" ]; }

# The job is a child of flock, and has the lock, too.
echo 'exec flock "$HERE/job.lock" "$JOB"' >"$scratch/script"
second_waits
kill -9 $(processes a "$job")
await is_inside "a b"
wait "$(cat "$scratch/a/begun")" && complain "the holder was not killed"
end b
result "the holder and its job are killed: who waits on the other host comes next"

echo 'exec flock -o "$HERE/job.lock" "$JOB"' >"$scratch/script"
lease=1s
second_waits
kill -9 $(processes a a/keeper/keeper-) $(processes a "$job")
await is_inside "a b"
wait "$(cat "$scratch/a/begun")" && complain "the holder was not killed"
end b
result "the holder and the keeper are killed: when the lease has ended, who waits comes next"

# Without the keeper, which renews the lease, the job on a continues and does not learn of the loss.
second_waits
kill -9 $(processes a a/keeper/keeper-)
await is_inside "a b"
end a
end b
await all_is_free
second_waits
end a
await is_inside "a b"
end b
result "the keeper is killed alone: who waits comes next when the lease has ended, and the next lock has another keeper"

await all_is_free
await no_keepers
result "nothing is held, and the keepers have ended"

finish
