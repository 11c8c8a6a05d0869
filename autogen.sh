#!/bin/sh
# Makes ./configure and everything it needs. Only for a checkout: a release tarball has them.
set -e
cd "$(dirname "$0")"
exec autoreconf --force --install
