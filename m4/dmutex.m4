dnl The macros of configure.ac that are our own.

dnl DM_TRY_FLAGS(FLAGS): sets dm_taken to whether the compiler takes FLAGS without a warning.
AC_DEFUN([DM_TRY_FLAGS], [
    AC_MSG_CHECKING([whether $CC takes $1])
    dm_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [dm_taken=yes], [dm_taken=no])
    CFLAGS=$dm_saved_CFLAGS
    AC_MSG_RESULT([$dm_taken])
])

dnl DM_WARNINGS(VARIABLE, FLAGS): those of FLAGS that the compiler knows.
AC_DEFUN([DM_WARNINGS], [
    $1=
    for dm_flag in m4_normalize([$2]); do
        DM_TRY_FLAGS([$dm_flag])
        AS_IF([test $dm_taken = yes], [$1="$$1 $dm_flag"])
    done
    AC_SUBST([$1])
])

dnl DM_SANITIZER(VARIABLE, LIST): the flags for -fsanitize=LIST; LIST may be "no".
AC_DEFUN([DM_SANITIZER], [
    $1=
    AS_IF([test "$2" != no], [
        $1="-fsanitize=$2 -fno-sanitize-recover=all -fno-omit-frame-pointer"
        DM_TRY_FLAGS([$$1])
        AS_IF([test $dm_taken = no],
            [AC_MSG_ERROR([$CC cannot do that: is its run-time library installed?])])
    ])
    AC_SUBST([$1])
])

dnl DM_HARDENING: HARDENING_CFLAGS and HARDENING_LDFLAGS, for all that is installed; PIE_CFLAGS and PIE_LDFLAGS,
dnl for programs besides.  What the compiler does not know is left out.  _FORTIFY_SOURCE wants optimization.
AC_DEFUN([DM_HARDENING], [
    DM_WARNINGS([HARDENING_CFLAGS], [-fstack-protector-strong -fstack-clash-protection -fcf-protection])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __OPTIMIZE__
#error it does not optimize
#endif
int it_does;]])],
        [HARDENING_CFLAGS="$HARDENING_CFLAGS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])
    DM_WARNINGS([HARDENING_LDFLAGS], [-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack])
    PIE_CFLAGS= PIE_LDFLAGS=
    DM_TRY_FLAGS([-fPIE -pie])
    AS_IF([test $dm_taken = yes], [PIE_CFLAGS=-fPIE PIE_LDFLAGS=-pie])
    AC_SUBST([PIE_CFLAGS])
    AC_SUBST([PIE_LDFLAGS])
])

dnl DM_STATIC_HIREDIS: in HIREDIS_LIBS the archive takes the place of the shared library.  A program may have another
dnl hiredis, vendored or newer, and the loader would give us that one's functions; those of an archive are hidden in our
dnl library.  The archive must be position-independent.
AC_DEFUN([DM_STATIC_HIREDIS], [
    AS_CASE([$with_hiredis], [static|shared], [], [AC_MSG_ERROR([--with-hiredis is static or shared])])
    AS_IF([test "$with_hiredis" = static], [
        AC_MSG_CHECKING([for libhiredis.a])
        dm_archive=$(AS_ECHO(["$HIREDIS_LIBS"]) | sed 's/-lhiredis/-l:libhiredis.a/')
        dm_saved_CFLAGS=$CFLAGS dm_saved_LIBS=$LIBS
        CFLAGS="$CFLAGS $HIREDIS_CFLAGS -fPIC -shared -Wl,-z,text" LIBS="$dm_archive $LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hiredis.h>]], [[freeReplyObject(redisReaderCreate());]])],
            [HIREDIS_LIBS=$dm_archive], [dm_archive=])
        CFLAGS=$dm_saved_CFLAGS LIBS=$dm_saved_LIBS
        AC_MSG_RESULT([${dm_archive:-not found}])
        AS_IF([test -z "$dm_archive"], [AC_MSG_ERROR([there is no position-independent libhiredis.a for the copy of
    hiredis inside libdmutex: build one from the source of hiredis, by its own make; or give --with-hiredis=shared, and
    programs that bring another hiredis may crash])])
    ])
])
