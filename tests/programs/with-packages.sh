#!/bin/sh
# with-packages.sh COMMAND...: runs the command with the Debian packages for the tests of this folder unpacked in
# $DMUTEX_TEST_PACKAGES. Nothing is installed, and the packages are removed at the command's end.
#
# The packages come from the machine's configured sources, with all dependencies that are not installed.

set -eu
packages="anacron apache2-bin apache2-utils cmake cron g++ iproute2 libjemalloc2 liblmdb0 logrotate memcached
    meson moreutils ninja-build pigz python3 python3-lmdb stress-ng"

DMUTEX_TEST_PACKAGES=$(mktemp -d "${TMPDIR:-/tmp}/dmutex-packages-XXXXXX")
export DMUTEX_TEST_PACKAGES
downloads=$DMUTEX_TEST_PACKAGES/downloads
log=$DMUTEX_TEST_PACKAGES/log
mkdir -p "$downloads/partial" "$DMUTEX_TEST_PACKAGES/lists/partial"

# In a separate session, so that vanish.sh survives if this script is killed with all children.
setsid sh "$(dirname "$0")/vanish.sh" $$ "$DMUTEX_TEST_PACKAGES" </dev/null >/dev/null 2>&1 &
trap 'rm -rf "$DMUTEX_TEST_PACKAGES"' EXIT
trap 'exit 1' HUP INT TERM

# apt WORDS...: runs apt-get; needs neither root's rights nor the end of another apt.
apt()
{
    apt-get -q -y -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Dir::Cache::archives="$downloads" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Retries=3 "$@" \
        </dev/null >>"$log" 2>&1
}

# download: by the machine's lists of packages, else by new lists, which are removed too.
download()
{
    apt --no-install-recommends --download-only install $packages && return
    set -- -o Dir::State::lists="$DMUTEX_TEST_PACKAGES/lists"
    apt "$@" update && apt "$@" --no-install-recommends --download-only install $packages
}

if ! download; then
    cat "$log" >&2
    echo "with-packages.sh: the packages cannot be downloaded: $packages" >&2
    exit 1
fi
for package in "$downloads"/*.deb; do
    [ ! -e "$package" ] || dpkg-deb -x "$package" "$DMUTEX_TEST_PACKAGES"
done
rm -rf "$downloads" "$DMUTEX_TEST_PACKAGES/lists"

"$@"
