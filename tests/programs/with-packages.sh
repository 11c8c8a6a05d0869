#!/bin/sh
# with-packages.sh COMMAND...: runs it with the Debian packages that the tests of this folder are about
# unpacked in $DMUTEX_TEST_PACKAGES. Nothing is installed, and they are gone when the command has ended.
#
# They come from the sources of packages that this machine has configured, with all that they need and
# this machine does not have installed.

set -eu
packages="anacron apache2-bin apache2-utils cmake cron g++ iproute2 libjemalloc2 liblmdb0 logrotate memcached
    meson moreutils ninja-build pigz python3 python3-lmdb stress-ng"

DMUTEX_TEST_PACKAGES=$(mktemp -d "${TMPDIR:-/tmp}/dmutex-packages-XXXXXX")
export DMUTEX_TEST_PACKAGES
downloads=$DMUTEX_TEST_PACKAGES/downloads
log=$DMUTEX_TEST_PACKAGES/log
mkdir -p "$downloads/partial" "$DMUTEX_TEST_PACKAGES/lists/partial"

# In a session of its own, so that it is there when this script is killed with all its children.
setsid sh "$(dirname "$0")/vanish.sh" $$ "$DMUTEX_TEST_PACKAGES" </dev/null >/dev/null 2>&1 &
trap 'rm -rf "$DMUTEX_TEST_PACKAGES"' EXIT
trap 'exit 1' HUP INT TERM

# apt WORDS...: an ordinary user may do it, and nobody else's apt is waited for.
apt()
{
    apt-get -q -y -o Debug::NoLocking=1 -o APT::Sandbox::User= -o Dir::Cache::archives="$downloads" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Retries=3 "$@" \
        </dev/null >>"$log" 2>&1
}

# download: by the lists of packages that are there, else by new ones, which are not left either.
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
