#!/bin/sh
# Programs with a lock file inside: lckdo, logrotate, anacron and dpkg. Each host has separate files; the programs' work
# is done on one host at a time.

. "$srcdir/tests/programs/lib.sh"
start_hosts

locked lckdo "exit status 75" <<'END'
exec lckdo "$HERE/job" "$JOB"
END

# ---------------------------------------------------------------------------
# logrotate: a state file, a log and a configuration per host; the directory of lock files is anybody's, the log's is not
# ---------------------------------------------------------------------------
locked logrotate "is already locked" <<END
mkdir -p -m 755 "\$HERE/logs"
cat >"\$HERE/logs/conf" <<CONF
\$HERE/logs/log {
    rotate 9
    nocompress
    create
    postrotate
        $job
    endscript
}
CONF
chmod 600 "\$HERE/logs/conf"
echo line >"\$HERE/logs/log"
exec logrotate -f -s "\$HERE/logrotate.status" "\$HERE/logs/conf"
END

# ---------------------------------------------------------------------------
# anacron: a spool per host
# ---------------------------------------------------------------------------
echo "1 0 nightly $job" >"$scratch/anacrontab"
locked anacron "locked by another anacron" <<END
mkdir -p "\$HERE/spool"
exec anacron -d -f -n -t $scratch/anacrontab -S "\$HERE/spool"
END

# ---------------------------------------------------------------------------
# dpkg: a database per host
# ---------------------------------------------------------------------------
mkdir -p "$scratch/package/DEBIAN" "$scratch/root"
cat >"$scratch/package/DEBIAN/control" <<'END'
Package: dmutex-test
Version: 1
Architecture: all
Maintainer: nobody
Description: takes its time to be installed
END
cp "$job" "$scratch/package/DEBIAN/preinst"
dpkg-deb -b "$scratch/package" "$scratch/package.deb" >"$scratch/built" || complain "$(cat "$scratch/built")"
locked dpkg "frontend lock was locked by" <<END
mkdir -p "\$HERE/dpkg/info" "\$HERE/dpkg/updates"
touch "\$HERE/dpkg/status" "\$HERE/dpkg/available"
exec dpkg --admindir="\$HERE/dpkg" --instdir=$scratch/root --log=$scratch/log.dpkg \
    --force-not-root --force-script-chrootless -i $scratch/package.deb
END

finish
