# The packages: `./quickstart deb` builds them from the tarball, so they are in it.
EXTRA_DIST += \
    debian/changelog \
    debian/control \
    debian/copyright \
    debian/dmutex-preload.install \
    debian/dmutex-preload.lintian-overrides \
    debian/dmutex-tools.examples \
    debian/dmutex-tools.install \
    debian/dmutex-tools.lintian-overrides \
    debian/libdmutex-dev.docs \
    debian/libdmutex-dev.examples \
    debian/libdmutex-dev.install \
    debian/libdmutex-dev.lintian-overrides \
    debian/libdmutex-mariadb.install \
    debian/libdmutex-mariadb.lintian-overrides \
    debian/libdmutex-postgres.install \
    debian/libdmutex-postgres.lintian-overrides \
    debian/libdmutex0.install \
    debian/libdmutex0.lintian-overrides \
    debian/libdmutex0.symbols \
    debian/not-installed \
    debian/rules \
    debian/source/format \
    debian/tests/cmake \
    debian/tests/control \
    debian/tests/lib.sh \
    debian/tests/library \
    debian/tests/preload \
    debian/tests/tools
