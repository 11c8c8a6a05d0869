#!/bin/sh
# The service of examples/systemd/: its command works on a server that knows only the user of locks.acl, and systemd,
# where it is installed, has nothing to say. Speaks TAP. Run by `make check` in the build directory.

. "$srcdir/tests/lib/tap.sh"
. "$srcdir/tests/lib/server.sh"
unit=$srcdir/examples/systemd/collector.service
acl=$srcdir/examples/systemd/locks.acl

sed -n '/ACL SETUSER app on/,/zcard/p' "$srcdir/doc/guide/servers.md" | xargs | sed 's/^ACL SETUSER/user/' >"$scratch/rights"
diff "$scratch/rights" "$acl" >>"$scratch/complaints"
result "locks.acl has the rights of servers.md"

# The default user off: the user of locks.acl is the only one.
{ cat "$acl"; echo "user default off"; } >"$scratch/users.acl"
start_server --port 0 --unixsocket "$scratch/s" --save '' --maxmemory-policy noeviction --aclfile "$scratch/users.acl" \
    --dir "$scratch" --logfile "$scratch/log"

# setting NAME: a setting of the unit, with this machine's paths instead of the example's.
setting()
{
    sed -n "s/^$1=//p" "$unit" | sed "s|rediss://app@locks.example|unix://app@$scratch/s|; s|%d/|$scratch/|
        s|/usr/bin/dmutex |$PWD/tools/dmutex |; s|/usr/local/bin/collector|$scratch/collector|"
}
printf '#!/bin/sh\necho "$DMUTEX_NAME" ${DMUTEX_TOKEN:+token}\n' >"$scratch/collector"
chmod +x "$scratch/collector"
credential=$(setting LoadCredential)
grep -o '>[^ ]*' "$acl" | tr -d '>' >"$scratch/${credential%%:*}"

# start: what systemd runs. With grace a new server would grant nothing for a lease.
start() { timeout 60 env -i "$(setting Environment)&grace=off" DMUTEX_LOG=warn $(setting ExecStart); }

is "the service" "$(start 2>&1)" "collector/active token"
result "the service runs with these rights, and nothing is refused"

echo wrong >"$scratch/${credential%%:*}"
start >"$scratch/said" 2>&1
is "the status with a wrong password" $? 77
result "the password comes from the credential"

if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/bin/dmutex |$PWD/tools/dmutex |; s|/usr/local/bin/collector|$scratch/collector|" "$unit" \
        >"$scratch/collector.service"
    systemd-analyze verify --man=no "$scratch/collector.service" >>"$scratch/complaints" 2>&1 ||
        complain "systemd-analyze fails"
    result "systemd-analyze verifies the unit"
fi

finish
